#pragma once

#include <optional>

namespace isthmus::cli {

/// `isthmus-rank --measure FILE [--quick] [--gpu]`: one of the ranks that measure a machine for
/// `isthmus calibrate`; rank 0 writes the rows into FILE. Nothing if the arguments ask for
/// something else. Throws base::Error if they are wrong, and what backend::MeasureMachine throws.
std::optional<int> MeasureIfAsked(int argc, const char* const* argv);

}  // namespace isthmus::cli
