#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

namespace isthmus::base {
namespace {

constexpr std::size_t kBufferSize = 64U << 10U;

[[noreturn]] void ThrowUnreadable(const std::filesystem::path& path, std::string_view reason) {
  throw Error(fmt::format("cannot read {}: {}", path.string(), reason));
}

std::string SystemText(int error_number) { return std::generic_category().message(error_number); }

// A descriptor that is closed when it goes.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The file a path means in the end, behind symbolic links; it need not exist.
std::filesystem::path Resolve(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path resolved = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : resolved;
}

}  // namespace

std::string ReadFile(const std::filesystem::path& path, Bytes limit) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) ThrowUnreadable(path, SystemText(errno));
  const OpenFile file(descriptor);
  struct stat status {};
  if (::fstat(file.descriptor(), &status) == 0 && S_ISDIR(status.st_mode)) {
    ThrowUnreadable(path, "it is a directory");
  }
  std::string content;
  std::array<char, kBufferSize> chunk{};
  while (true) {
    const ssize_t num_read = ::read(file.descriptor(), chunk.data(), chunk.size());
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) ThrowUnreadable(path, SystemText(errno));
    if (num_read == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(num_read));
    if (std::cmp_greater(content.size(), limit.value())) {
      ThrowUnreadable(path, fmt::format("it holds more than {}", FormatBytes(limit)));
    }
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(Resolve(path)) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (std::filesystem::is_directory(status)) throw IoError("write", path_.string(), EISDIR);
  const bool can_be_replaced =
      !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  if (!can_be_replaced) {
    // As named, since resolving /dev/stdout can end in a name that no longer opens.
    path_ = path;
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw IoError("write", path_.string(), errno);
    return;
  }
  if (path_.has_parent_path()) {
    std::filesystem::create_directories(path_.parent_path(), error);
    if (error) throw IoError("make folder", path_.parent_path().string(), error.value());
  }
  temporary_ = path_;
  temporary_ += fmt::format(".partial-{}", ::getpid());
  constexpr mode_t kReadWriteForAll = 0666;  // Narrowed by the umask.
  descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadWriteForAll);
  if (descriptor_ < 0) throw IoError("write", path_.string(), errno);
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Write(std::string_view bytes) {
  ISTHMUS_CHECK(descriptor_ >= 0, "{} is closed", path_.string());
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferSize) Flush();
}

void AtomicFile::Flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t num_written = ::write(descriptor_, left.data(), left.size());
    if (num_written < 0 && errno == EINTR) continue;
    if (num_written < 0) throw IoError("write", path_.string(), errno);
    left.remove_prefix(static_cast<std::size_t>(num_written));
  }
  buffer_.clear();
}

void AtomicFile::Commit() {
  ISTHMUS_CHECK(descriptor_ >= 0, "{} is closed", path_.string());
  Flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    throw IoError("write", path_.string(), errno);
  }
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw IoError("write", path_.string(), errno);
  }
  temporary_.clear();
}

void AtomicFile::Discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void WriteFile(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

}  // namespace isthmus::base
