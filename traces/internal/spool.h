#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/internal/block.h"
#include "traces/trace.h"

namespace isthmus::traces::internal {

/// Keeps the entries of a run, packed as in the stored form, to be gone through several times.
///
/// For forms that need the whole run before the first line can be written. Memory: some 10 bytes an
/// event.
template <typename Entry>
class Spool {
 public:
  explicit Spool(std::size_t num_classes = 0) : num_classes_(num_classes) {}

  /// Needs rank classes below num_classes.
  void Append(std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      open_.push_back(entry);
      if (open_.size() == kBlockEntries) Close();
    }
  }

  /// Calls `visit(entry)` for all, in the order they came.
  template <typename Visitor>
  void ForEach(Visitor visit) const {
    std::vector<Entry> entries;
    for (const std::string& bytes : blocks_) {
      entries.clear();
      Unpack(bytes, entries);
      for (const Entry& entry : entries) visit(entry);
    }
    for (const Entry& entry : open_) visit(entry);
  }

 private:
  void Close();
  void Unpack(const std::string& bytes, std::vector<Entry>& entries) const;

  std::size_t num_classes_;
  std::vector<std::string> blocks_;
  std::vector<Entry> open_;
};

extern template class Spool<Event>;
extern template class Spool<MemoryCounter>;

}  // namespace isthmus::traces::internal
