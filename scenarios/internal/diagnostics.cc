#include "scenarios/internal/diagnostics.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace isthmus::scenarios::internal {
namespace {

constexpr std::size_t kMaxText = 1'000;
constexpr std::size_t kMaxName = 64;

// Cuts long texts, at the border of a UTF-8 character.
void Shorten(std::string& text) {
  if (text.size() <= kMaxText) return;
  std::size_t length = kMaxText;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  text.resize(length);
  text += "...";
}

}  // namespace

void Diagnostics::Add(const Origin& origin, std::string_view path, std::string_view message,
                      std::string hint) {
  if (entries_.size() >= kMaxEntries) return;
  base::Diagnostic diagnostic;
  diagnostic.file = origin.kind == Origin::Kind::kSet ? "--set " + origin.file : origin.file;
  diagnostic.line = origin.line;
  diagnostic.column = origin.column;
  // "--set nodes: error: nodes: …" would say the key twice.
  const bool says_key = origin.kind == Origin::Kind::kSet && origin.file == path;
  diagnostic.message =
      path.empty() || says_key ? std::string(message) : fmt::format("{}: {}", path, message);
  Shorten(diagnostic.message);
  Shorten(hint);
  diagnostic.hint = std::move(hint);
  const std::size_t order = FileOrder(diagnostic.file);
  entries_.push_back({std::string(path), order, std::move(diagnostic)});
}

void Diagnostics::AddAt(const Node& root, std::string_view path, std::string_view message,
                        std::string hint) {
  const Place place = Locate(root, path);
  // A missing value is complained about at the key of the map that should have it.
  const bool at_value = place.is_exact && place.node->origin.known();
  const Origin& origin =
      at_value || !place.key_origin.known() ? place.node->origin : place.key_origin;
  Add(origin, path, message, std::move(hint));
}

void Diagnostics::AddFile(std::string file, std::string_view message, std::string hint) {
  Origin origin;
  origin.kind = Origin::Kind::kFile;
  origin.file = std::move(file);
  Add(origin, {}, message, std::move(hint));
}

void Diagnostics::AddError(const Origin& origin, std::string_view path, std::string_view text) {
  constexpr std::string_view kHint = "  hint: ";
  constexpr std::string_view kError = "error: ";
  std::string message;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    start = end + 1;
    if (line.starts_with(kHint)) {
      Add(origin, path, message, std::string(line.substr(kHint.size())));
      message.clear();
      continue;
    }
    if (!message.empty()) Add(origin, path, message);
    // Our own place is better than the one it may name.
    const std::size_t error = line.find(kError);
    if (error != std::string_view::npos) line.remove_prefix(error + kError.size());
    message = line;
  }
  if (!message.empty()) Add(origin, path, message);
}

void Diagnostics::Take(Diagnostics&& other) {
  for (Entry& entry : other.entries_) {
    if (entries_.size() >= kMaxEntries) return;
    entry.file_order = FileOrder(entry.diagnostic.file);
    entries_.push_back(std::move(entry));
  }
}

bool Diagnostics::HasAt(std::string_view path) const {
  if (entries_.size() >= kMaxEntries) return true;  // it may be among those left out
  return std::ranges::find(entries_, path, &Entry::path) != entries_.end();
}

bool Diagnostics::HasUnder(std::string_view path) const {
  if (entries_.size() >= kMaxEntries) return true;
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    if (!entry.path.starts_with(path)) return false;
    return path.empty() || entry.path.size() == path.size() || entry.path[path.size()] == '.';
  });
}

void Diagnostics::Throw() const {
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, {}, [](const Entry& entry) {
    return std::make_tuple(entry.file_order, entry.diagnostic.line, entry.diagnostic.column);
  });
  std::vector<base::Diagnostic> diagnostics;
  diagnostics.reserve(sorted.size());
  for (Entry& entry : sorted) diagnostics.push_back(std::move(entry.diagnostic));
  throw base::ScenarioError(std::move(diagnostics));
}

std::size_t Diagnostics::FileOrder(const std::string& file) const {
  const auto met = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.diagnostic.file == file; });
  return met == entries_.end() ? entries_.size() : met->file_order;
}

std::string NamesHint(std::string_view name, const std::vector<std::string>& allowed) {
  std::string hint;
  const auto closest = name.size() <= kMaxName ? base::ClosestName(name, allowed) : std::nullopt;
  if (closest) {
    hint = fmt::format("did you mean {}? ", *closest);
  }
  // A long list helps nobody: the first ones say what kind of name is meant.
  constexpr std::size_t kMostNames = 40;
  constexpr std::size_t kExamples = 12;
  if (allowed.size() <= kMostNames) {
    return hint + fmt::format("allowed: {}", fmt::join(allowed, ", "));
  }
  const std::vector<std::string> examples(allowed.begin(), allowed.begin() + kExamples);
  return hint + fmt::format("allowed: {} and {} more", fmt::join(examples, ", "),
                            allowed.size() - kExamples);
}

}  // namespace isthmus::scenarios::internal
