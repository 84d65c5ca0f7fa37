#include "backend/fake/mailbox.h"

namespace isthmus::backend {

bool Census::Sleep() {
  const std::lock_guard lock(mutex_);
  return --num_awake_ == 0;
}

void Census::Wake() {
  const std::lock_guard lock(mutex_);
  ++num_awake_;
}

bool Census::Leave() {
  const std::lock_guard lock(mutex_);
  --num_left_;
  return --num_awake_ == 0 && num_left_ > 0;
}

void Census::Move() {
  const std::lock_guard lock(mutex_);
  ++num_moves_;
}

std::uint64_t Census::num_moves() const {
  const std::lock_guard lock(mutex_);
  return num_moves_;
}

void Mailbox::Deliver(const Completion& completion) {
  const std::lock_guard lock(mutex_);
  delivered_.push_back(completion);
  if (!sleeping_) return;
  // Counted awake before it runs, so that the deliverer may fall asleep in the meantime.
  sleeping_ = false;
  census_.Wake();
  something_new_.notify_one();
}

void Mailbox::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  something_new_.notify_one();
}

Mailbox::Reply Mailbox::Await(std::chrono::milliseconds patience,
                              std::vector<Completion>& completions) {
  completions.clear();
  std::unique_lock lock(mutex_);
  if (delivered_.empty() && !stopped_) {
    if (census_.Sleep()) {
      census_.Wake();
      return Reply::kAllSleep;
    }
    sleeping_ = true;
    something_new_.wait_for(lock, patience, [this] { return !delivered_.empty() || stopped_; });
    if (sleeping_) census_.Wake();
    sleeping_ = false;
  }
  if (stopped_) return Reply::kStopped;
  if (delivered_.empty()) return Reply::kTimedOut;
  completions.swap(delivered_);
  return Reply::kDelivered;
}

}  // namespace isthmus::backend
