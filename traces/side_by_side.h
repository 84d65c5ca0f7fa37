#pragma once

#include <filesystem>

#include "traces/recorder.h"

namespace isthmus::traces {

/// Writes two traces of one program into one Perfetto file (.pftrace), both from the start of the
/// step on: per rank a process "rank 3 predicted: role" and, next to it, "rank 3 measured: role",
/// with the same tracks and the same names of ops; the steps of both above them.
///
/// Needs one class per rank on both sides and equal numbers of them. Throws base::Error for another
/// ending and base::IoError when the file can't be written; it appears whole or not at all.
void WriteSideBySide(const Trace& predicted, const Trace& measured,
                     const std::filesystem::path& path);

}  // namespace isthmus::traces
