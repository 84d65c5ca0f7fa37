#include "traces/internal/spool.h"

#include "base/check.h"

namespace isthmus::traces::internal {
namespace {

auto& ColumnsOf(proto::Block& block, const Event*) { return *block.mutable_events(); }
auto& ColumnsOf(proto::Block& block, const MemoryCounter*) { return *block.mutable_counters(); }

}  // namespace

template <typename Entry>
void Spool<Entry>::Close() {
  proto::Block block;
  Encode(std::span<const Entry>(open_), num_classes_,
         ColumnsOf(block, static_cast<const Entry*>(nullptr)));
  blocks_.push_back(Compress(block));
  open_.clear();
}

template <typename Entry>
void Spool<Entry>::Unpack(const std::string& bytes, std::vector<Entry>& entries) const {
  proto::Block block;
  Defect defect = Decompress(bytes, block);
  if (!defect) {
    defect = Decode(ColumnsOf(block, static_cast<const Entry*>(nullptr)), num_classes_, entries);
  }
  ISTHMUS_CHECK(!defect.has_value(), "a kept block {}", *defect);
}

template class Spool<Event>;
template class Spool<MemoryCounter>;

}  // namespace isthmus::traces::internal
