#include "backend/torch/record/kernel_ops.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace isthmus::backend {
namespace {

std::string Demangled(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : mangled;
}

bool RunsKernels(const plan::Op& op) {
  return op.kind == plan::OpKind::kCompute || op.kind == plan::OpKind::kOptimizer;
}

std::int64_t DistanceTo(const traces::Event& event, std::int64_t time) {
  return std::max({event.start_ps - time, time - event.end_ps, std::int64_t{0}});
}

// Of events in order, none of which overlap; null where there are none.
const traces::Event* Nearest(const std::vector<const traces::Event*>& events, std::int64_t time) {
  const auto behind = std::upper_bound(
      events.begin(), events.end(), time,
      [](std::int64_t at, const traces::Event* event) { return at < event->start_ps; });
  const traces::Event* const after = behind == events.end() ? nullptr : *behind;
  if (behind == events.begin()) return after;
  const traces::Event* const before = *(behind - 1);
  const bool is_nearer = after != nullptr && DistanceTo(*after, time) < DistanceTo(*before, time);
  return is_nearer ? after : before;
}

}  // namespace

std::uint32_t KernelNames::NumberOf(const std::string& mangled) {
  const auto [found, is_new] = numbers_.emplace(mangled, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(Demangled(mangled));
  return found->second;
}

std::vector<traces::KernelRun> AssignKernels(const plan::Role& role,
                                             const std::vector<traces::Event>& events,
                                             const std::vector<KernelRecord>& kernels,
                                             KernelNames& names) {
  std::vector<const traces::Event*> ops;
  for (const traces::Event& event : events) {
    if (event.inner == 0 && RunsKernels(role.ops[event.op])) ops.push_back(&event);
  }
  std::vector<traces::KernelRun> assigned;
  for (const KernelRecord& kernel : kernels) {
    if (kernel.name.starts_with("nccl")) continue;
    const std::int64_t middle = kernel.start_ps + (kernel.end_ps - kernel.start_ps) / 2;
    const traces::Event* const op = Nearest(ops, middle);
    if (op == nullptr || DistanceTo(*op, middle) > kKernelClockSlackPs) continue;
    assigned.push_back({.rank_class = op->rank_class,
                        .op = op->op,
                        .name = names.NumberOf(kernel.name),
                        .stream = kernel.stream,
                        .start_ps = kernel.start_ps,
                        .end_ps = kernel.end_ps});
  }
  return assigned;
}

}  // namespace isthmus::backend
