#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/units.h"

namespace isthmus::base {

/// The whole content of a file that the user named.
///
/// Throws Error, naming the path and the reason, when it does not exist, is a directory, can't be
/// read or holds more than `limit` bytes (a device that never ends is refused that way too).
std::string ReadFile(const std::filesystem::path& path, Bytes limit = Bytes(std::int64_t{1} << 30));

/// A file that appears under its name whole or not at all.
///
/// What is written goes to a temporary file beside it; Commit() renames that over `path`. Without
/// Commit (an exception on the way) the temporary file is removed and an older `path` is as before.
/// Missing folders are made. A symbolic link is followed, not replaced; a `path` that is not a
/// regular file (/dev/stdout, a pipe) is written directly, since it can't be replaced.
/// Every failure throws IoError with the path. Not thread-safe. Writes are buffered (64 KiB).
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::string_view bytes);

  /// Needs to be called once, after the last Write.
  void Commit();

 private:
  void Flush();
  void Discard() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // Empty when `path` is written directly or all is done.
  std::string buffer_;
  int descriptor_ = -1;
};

/// The file's whole content at once, as AtomicFile does it.
void WriteFile(const std::filesystem::path& path, std::string_view content);

}  // namespace isthmus::base
