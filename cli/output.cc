#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/file_io.h"
#include "cli/commands.h"

namespace isthmus::cli {

void Write(const Output& output, const std::string& text) {
  if (output.file) {
    base::AtomicFile file(*output.file);
    file.Write(text);
    file.Commit();
    return;
  }
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0)
    throw base::IoError("cannot write to standard output");
}

bool WantsColor(const Output& output) {
  return !output.file && isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 140);
}

}  // namespace isthmus::cli
