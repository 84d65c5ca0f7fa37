#pragma once

#include <filesystem>

namespace isthmus::cli {

/// The program of a rank, isthmus-rank, beside this one. Throws base::Error if this build has none,
/// or lacks the GPU side that ranks `on_gpu` load.
std::filesystem::path FindRankProgram(bool on_gpu);

}  // namespace isthmus::cli
