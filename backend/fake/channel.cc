#include "backend/fake/channel.h"

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::backend {

void Channel::Post(Side side, const Posting& posting) {
  const std::lock_guard lock(mutex_);
  std::deque<Posting>& partners = side == Side::kSend ? receives_ : sends_;
  if (partners.empty()) {
    (side == Side::kSend ? sends_ : receives_).push_back(posting);
    return;
  }
  const Posting partner = partners.front();
  if (partner.bytes != posting.bytes) {
    const base::Bytes sent = side == Side::kSend ? posting.bytes : partner.bytes;
    const base::Bytes awaited = side == Side::kSend ? partner.bytes : posting.bytes;
    throw base::Error(fmt::format("message {} from rank {} to rank {}: {} bytes sent, {} awaited",
                                  messages_.size(), from_.value(), to_.value(), sent.value(),
                                  awaited.value()));
  }
  partners.pop_front();
  messages_.push_back(posting.bytes);
  const std::int64_t now = clock_.now_ps();
  for (const Posting& each : {partner, posting}) {
    each.mailbox->Deliver(
        {.kind = Completion::Kind::kTransfer, .index = each.transfer, .start_ps = now});
  }
}

std::vector<base::Bytes> Channel::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

std::size_t Channel::num_waiting(Side side) const {
  const std::lock_guard lock(mutex_);
  return side == Side::kSend ? sends_.size() : receives_.size();
}

}  // namespace isthmus::backend
