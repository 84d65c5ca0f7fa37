#pragma once

#include <cstdint>
#include <vector>

namespace isthmus::sim {

/// What is still to happen, earliest first; at equal times in the order of Push, so that a run is a
/// function of its inputs alone.
///
/// A 4-ary heap: half the levels of a binary one, children in one cache line. Not thread-safe.
/// Cost: Push and Pop O(log n).
template <typename Payload>
class EventHeap {
 public:
  struct Entry {
    std::int64_t time_ps = 0;
    std::uint64_t sequence = 0;
    Payload payload{};
  };

  bool empty() const { return entries_.empty(); }
  /// When the earliest happens. Needs !empty().
  std::int64_t next_ps() const { return entries_.front().time_ps; }

  void Push(std::int64_t time_ps, const Payload& payload) {
    const Entry entry{time_ps, next_sequence_++, payload};
    std::size_t at = entries_.size();
    entries_.push_back(entry);
    while (at > 0) {
      const std::size_t parent = (at - 1) / kArity;
      if (!Before(entry, entries_[parent])) break;
      entries_[at] = entries_[parent];
      at = parent;
    }
    entries_[at] = entry;
  }

  /// Needs !empty().
  Entry Pop() {
    const Entry first = entries_.front();
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) SiftDown(last);
    return first;
  }

 private:
  static constexpr std::size_t kArity = 4;

  static bool Before(const Entry& a, const Entry& b) {
    return a.time_ps != b.time_ps ? a.time_ps < b.time_ps : a.sequence < b.sequence;
  }

  void SiftDown(const Entry& entry) {
    std::size_t at = 0;
    const std::size_t size = entries_.size();
    while (true) {
      const std::size_t first_child = at * kArity + 1;
      if (first_child >= size) break;
      std::size_t least = first_child;
      const std::size_t end = first_child + kArity < size ? first_child + kArity : size;
      for (std::size_t child = first_child + 1; child < end; ++child) {
        if (Before(entries_[child], entries_[least])) least = child;
      }
      if (!Before(entries_[least], entry)) break;
      entries_[at] = entries_[least];
      at = least;
    }
    entries_[at] = entry;
  }

  std::vector<Entry> entries_;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace isthmus::sim
