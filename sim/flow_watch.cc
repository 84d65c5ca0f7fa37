#include "sim/flow_watch.h"

#include <utility>

namespace isthmus::sim {

FlowWatch::FlowWatch(const Traffic& traffic, std::vector<const Lowered*> jobs,
                     const SimOptions& options)
    : traffic_(traffic), jobs_(std::move(jobs)), on_flow_(options.on_flow) {
  if (options.record_links) load_.emplace(traffic);
}

FlowNetwork::RecordPort FlowWatch::StartPort() {
  if (!load_) return nullptr;
  return [this](const FlowRecord& flow) {
    const auto [cls, index, inner] = mix_->engine(flow.tag.job).OwnerOf(flow.tag);
    const plan::Op& op = jobs_[flow.tag.job]->role(cls).ops[index];
    load_->Begin(flow, {flow.tag.job, op.purpose, op.module, op.kind, op.detail});
  };
}

FlowNetwork::RecordPort FlowWatch::EndPort() {
  if (!tells() && !load_) return nullptr;
  return [this](const FlowRecord& flow) {
    if (load_) load_->End(flow);
    if (!tells() || flow.tag.job != 0) return;
    const auto [cls, op, inner] = mix_->engine(0).OwnerOf(flow.tag);
    on_flow_({cls, op, inner, flow.purpose, traffic_.paths[flow.path].links, flow.bytes,
              flow.start_ps, flow.end_ps, flow.alone_ps});
  };
}

std::optional<LinkHistory> FlowWatch::History(std::int64_t end_ps) {
  if (!load_) return std::nullopt;
  return std::move(*load_).History(end_ps);
}

}  // namespace isthmus::sim
