#include "backend/torch/checkpoint/internal/state_file.h"

#include <array>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "backend/torch/checkpoint/element_runs.h"
#include "base/error.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace isthmus::backend {

const char* ToText(StateKind kind) {
  switch (kind) {
    case StateKind::kWeight:
      return "weight";
    case StateKind::kFirstMoment:
      return "first_moment";
    case StateKind::kSecondMoment:
      return "second_moment";
    case StateKind::kGradient:
      return "gradient";
  }
  return "";
}

namespace internal {
namespace {

constexpr std::string_view kFirstLine = "isthmus state 1";
constexpr std::array kKinds = {StateKind::kWeight, StateKind::kFirstMoment,
                               StateKind::kSecondMoment, StateKind::kGradient};
constexpr std::array kTypes = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16};

std::uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  return base::HashBuilder().AddBytes(bytes).digest();
}

std::span<const std::byte> BytesOf(const at::Tensor& values) {
  return {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()};
}

std::uint64_t ChecksumOf(std::string_view text) {
  return ChecksumOf(std::as_bytes(std::span(text.data(), text.size())));
}

/// An entry and the tensors that follow each other in it.
struct Draft {
  Entry entry;
  at::Tensor values;
};

std::vector<Draft> DraftsOf(const StoredPart& part) {
  const std::vector<ElementRun> runs = RunsOf(*part.parameter, part.begin, part.end);
  std::vector<Draft> drafts;
  for (const StoredPart::State& state : part.states) {
    const at::Tensor values = state.values.detach().to(at::kCPU).contiguous();
    std::map<const ParameterPiece*, std::size_t> found;
    std::vector<std::vector<at::Tensor>> pieces;
    const std::size_t first = drafts.size();
    for (const ElementRun& run : runs) {
      const auto [at, is_new] = found.emplace(run.piece, found.size());
      if (is_new) {
        drafts.push_back({{.kind = state.kind,
                           .type = values.scalar_type(),
                           .name = run.piece->name,
                           .shape = run.piece->global_shape}});
        pieces.emplace_back();
      }
      drafts[first + at->second].entry.runs.push_back({run.global_begin, run.size});
      pieces[at->second].push_back(values.narrow(0, run.local_begin - part.begin, run.size));
    }
    for (std::size_t index = 0; index < pieces.size(); ++index) {
      drafts[first + index].values = at::cat(pieces[index]);
    }
  }
  return drafts;
}

std::string LineOf(const Entry& entry) {
  std::string line =
      fmt::format("{} {} {} {} {} {}", ToText(entry.kind), c10::toString(entry.type),
                  base::HashText(entry.checksum), entry.offset, entry.bytes, entry.shape.size());
  for (const std::int64_t size : entry.shape) line += fmt::format(" {}", size);
  line += fmt::format(" {}", entry.runs.size());
  for (const GlobalRun& run : entry.runs) line += fmt::format(" {} {}", run.begin, run.size);
  return line + " " + entry.name + "\n";
}

// Index lines are covered by a checksum, so what is wrong with one is wrong with the program.
Entry ParseLine(const std::string& line) {
  std::istringstream words(line);
  Entry entry;
  std::string kind;
  std::string type;
  std::size_t count = 0;
  words >> kind >> type >> std::hex >> entry.checksum >> std::dec >> entry.offset >> entry.bytes >>
      count;
  entry.shape.resize(count);
  for (std::int64_t& size : entry.shape) words >> size;
  words >> count;
  entry.runs.resize(count);
  for (GlobalRun& run : entry.runs) words >> run.begin >> run.size;
  words >> std::ws;
  std::getline(words, entry.name);
  for (const StateKind known : kKinds) {
    if (kind == ToText(known)) entry.kind = known;
  }
  for (const at::ScalarType known : kTypes) {
    if (type == c10::toString(known)) entry.type = known;
  }
  return entry;
}

}  // namespace

FileFacts WriteStateFile(const std::filesystem::path& path, const std::vector<StoredPart>& parts) {
  std::vector<Draft> drafts;
  for (const StoredPart& part : parts) {
    for (Draft& draft : DraftsOf(part)) drafts.push_back(std::move(draft));
  }
  std::string index;
  std::int64_t offset = 0;
  for (Draft& draft : drafts) {
    draft.entry.offset = offset;
    draft.entry.bytes = static_cast<std::int64_t>(draft.values.nbytes());
    draft.entry.checksum = ChecksumOf(BytesOf(draft.values));
    offset += draft.entry.bytes;
    index += LineOf(draft.entry);
  }
  const std::string head = fmt::format("{}\n{}\n", kFirstLine, index.size());
  base::AtomicFile file(path);
  file.Write(head);
  file.Write(index);
  for (const Draft& draft : drafts) {
    const auto bytes = BytesOf(draft.values);
    file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  file.Commit();
  return {static_cast<std::int64_t>(head.size() + index.size()) + offset, ChecksumOf(index)};
}

StateFile::StateFile(std::filesystem::path path, const FileFacts& facts) : path_(std::move(path)) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  if (error) throw base::Error(fmt::format("{} is missing: {}", path_.string(), error.message()));
  if (static_cast<std::int64_t>(size) != facts.bytes) {
    throw base::Error(
        fmt::format("{} has {} bytes, {} were written", path_.string(), size, facts.bytes));
  }
  std::ifstream file(path_, std::ios::binary);
  std::string first;
  std::string length;
  std::getline(file, first);
  std::getline(file, length);
  std::size_t bytes = 0;
  const bool known = first == kFirstLine && !length.empty() &&
                     (std::istringstream(length) >> bytes) && bytes <= size;
  std::string index(known ? bytes : 0, '\0');
  file.read(index.data(), static_cast<std::streamsize>(index.size()));
  if (!known || !file || ChecksumOf(index) != facts.index_checksum) {
    throw base::Error(
        fmt::format("{} is corrupt: its index is not as it was written", path_.string()));
  }
  payload_begin_ = static_cast<std::int64_t>(first.size() + length.size() + 2 + index.size());
  std::istringstream lines(index);
  for (std::string line; std::getline(lines, line);) entries_.push_back(ParseLine(line));
}

at::Tensor StateFile::Read(const Entry& entry) const {
  const auto size = static_cast<std::int64_t>(c10::elementSize(entry.type));
  at::Tensor values = at::empty({entry.bytes / size}, entry.type);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(payload_begin_ + entry.offset);
  file.read(static_cast<char*>(values.data_ptr()), entry.bytes);
  if (!file || ChecksumOf(BytesOf(values)) != entry.checksum) {
    throw base::Error(fmt::format("{} is corrupt: {} of {} is not as it was written",
                                  path_.string(), ToText(entry.kind), entry.name));
  }
  return values;
}

}  // namespace internal
}  // namespace isthmus::backend
