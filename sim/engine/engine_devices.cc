// Ranks that compute on devices they share: work progresses at a rate, ends are re-timed.
#include "sim/engine/engine.h"

namespace isthmus::sim {

void Engine::StartShared(std::uint32_t cls, std::uint32_t op, std::int64_t work, std::int64_t now) {
  const auto device = static_cast<std::uint32_t>(device_of(cls));
  // One compute op at a time runs per class, so the class names the job; its op is found again by
  // the state of the class.
  devices_[device].Start(now, cls, work);
  running_op_[cls] = op;
  ArmDevice(device);
}

void Engine::ArmDevice(std::uint32_t device) {
  const auto next = devices_[device].NextEnd();
  if (!next) return;
  heap_.Push(next->first, {.what = What::kDevice,
                           .a = device,
                           .b = static_cast<std::uint32_t>(devices_[device].epoch())});
}

void Engine::OnDevice(std::uint32_t device, std::uint32_t epoch, std::int64_t now) {
  if (static_cast<std::uint32_t>(devices_[device].epoch()) != epoch) return;  // re-timed since
  const std::uint32_t cls = devices_[device].NextEnd()->second;
  const std::uint32_t op = running_op_[cls];
  devices_[device].End(now, cls);
  ArmDevice(device);
  const plan::Op& what = variant(cls).ops->ops[op];
  if (!Meets(cls, what)) {
    Complete(cls, op, result_.times[cls].start_ps[op], result_.times[cls].start_ps[op], now);
    return;
  }
  const std::uint32_t meeting = MeetingOf(cls, what);
  if (--meetings_[meeting].num_running == 0) EndMeeting(meeting, now);
}

}  // namespace isthmus::sim
