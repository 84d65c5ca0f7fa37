#include "backend/launch/internal/line_reader.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace isthmus::backend::internal {
namespace {
constexpr std::size_t kChunk = 65'536;
}

void LineReader::Read(const OnLine& on_line) { static_cast<void>(ReadSome(on_line)); }

void LineReader::Drain(const OnLine& on_line) {
  while (ReadSome(on_line)) {
  }
  Finish(on_line);
}

bool LineReader::ReadSome(const OnLine& on_line) {
  if (!pipe_.is_open()) return false;
  std::array<char, kChunk> bytes;  // NOLINT: read() fills what is used of it.
  const ssize_t size = ::read(pipe_.number(), bytes.data(), bytes.size());
  if (size < 0) return errno == EINTR;
  if (size == 0) {
    Finish(on_line);
    return false;
  }
  Take({bytes.data(), static_cast<std::size_t>(size)}, on_line);
  return true;
}

void LineReader::Take(std::string_view bytes, const OnLine& on_line) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    begun_ += bytes.substr(0, end);
    on_line(begun_);
    begun_.clear();
    bytes.remove_prefix(end + 1);
  }
  begun_ += bytes;
  if (begun_.size() < kChunk) return;
  on_line(begun_);
  begun_.clear();
}

void LineReader::Finish(const OnLine& on_line) {
  pipe_.Close();
  if (begun_.empty()) return;
  on_line(begun_);
  begun_.clear();
}

}  // namespace isthmus::backend::internal
