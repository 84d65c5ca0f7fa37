#include "cli/rank_program.h"

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::cli {
namespace {

namespace fs = std::filesystem;

fs::path FolderOfThisProgram() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) throw base::IoError("find", "/proc/self/exe", failed.value());
  return program.parent_path();
}

}  // namespace

fs::path FindRankProgram(bool on_gpu) {
  const fs::path folder = FolderOfThisProgram();
  const fs::path program = folder / "isthmus-rank";
  if (!fs::exists(program)) {
    throw base::Error(fmt::format(
        "this build has no real backend: {} is not there\n"
        "  hint: scripts/setup.sh --backend installs libtorch; then configure and build again",
        program.string()));
  }
  if (on_gpu && !fs::exists(folder / "libisthmus_cuda.so")) {
    throw base::Error(
        fmt::format("this build has no GPU side: {} is not there\n  hint: --ranks-on cpu",
                    (folder / "libisthmus_cuda.so").string()));
  }
  return program;
}

}  // namespace isthmus::cli
