#include "traces/internal/json_lines_writer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace isthmus::traces::internal {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Each list as a list of what `convert` makes of its entries.
template <typename Entries, typename Convert>
Json ListOf(const Entries& entries, Convert convert) {
  Json list = Json::array();
  for (const auto& entry : entries) list.push_back(convert(entry));
  return list;
}

Json ToJson(const OpRecord& op) {
  Json json{{"name", op.name},
            {"category", ToText(op.category)},
            {"kind", op.kind},
            {"action", op.action},
            {"module", op.module},
            {"chunk", op.chunk},
            {"lane", op.lane},
            {"microbatch", op.microbatch},
            {"step", op.step},
            {"group", op.group},
            {"ends_backward", op.ends_backward},
            {"model_flops", op.model_flops},
            {"hardware_flops", op.hardware_flops},
            {"bytes", op.bytes}};
  json["dependencies"] = ListOf(op.dependencies, [](const Dependency& dependency) {
    return Json{{"op", dependency.op}, {"transfer", dependency.transfer}};
  });
  json["transfers"] = ListOf(op.transfers, [](const TransferRecord& transfer) {
    return Json{{"sends", transfer.sends}, {"peer", transfer.peer}, {"bytes", transfer.bytes}};
  });
  json["inner_shares"] = ListOf(op.inner_shares, [](const InnerShare& share) {
    return Json{{"category", ToText(share.category)}, {"duration_ps", share.duration_ps}};
  });
  json["block"] = op.block;
  return json;
}

Json ToJson(const std::vector<PieceRecord>& block) {
  return ListOf(block, [](const PieceRecord& piece) {
    return Json{{"name", piece.name}, {"category", ToText(piece.category)}};
  });
}

Json ToJson(const RoleRecord& role) {
  Json json{{"name", role.name}};
  json["lanes"] = ListOf(role.lanes, [](const LaneRecord& lane) {
    return Json{{"kind", lane.kind}, {"name", lane.name}};
  });
  json["groups"] = role.groups;
  json["ops"] = ListOf(role.ops, [](const OpRecord& op) { return ToJson(op); });
  json["blocks"] = ListOf(role.blocks, [](const auto& block) { return ToJson(block); });
  return json;
}

Json ToJson(const RankClass& rank_class) {
  return {{"representative", rank_class.representative},
          {"count", rank_class.count},
          {"members", rank_class.members},
          {"role", rank_class.role},
          {"node", rank_class.node},
          {"groups", rank_class.groups},
          {"peers", rank_class.peers}};
}

Json ToJson(const ModuleRecord& module) {
  return {{"name", module.name},           {"kind", module.kind},
          {"layout", module.layout},       {"first_rank", module.first_rank},
          {"num_ranks", module.num_ranks}, {"parameters", module.parameters}};
}

Json ToJson(const BoundaryRecord& boundary) {
  return {{"from", boundary.from},
          {"to", boundary.to},
          {"kind", boundary.kind},
          {"bytes_forward", boundary.bytes_forward},
          {"bytes_backward", boundary.bytes_backward}};
}

Json ToJson(const Measurement& measurement) {
  return {{"step_times_ps", measurement.step_times_ps},
          {"num_warmup_steps", measurement.num_warmup_steps},
          {"recorded_step", measurement.recorded_step},
          {"software", measurement.software}};
}

Json ToJson(const Header& header) {
  Json json{{"kind", ToText(header.kind)},
            {"scenario_name", header.scenario_name},
            {"scenario_hash", header.scenario_hash},
            {"program_hash", header.program_hash},
            {"profile_name", header.profile_name},
            {"profile_hash", header.profile_hash},
            {"commit", header.commit},
            {"machine", header.machine},
            {"seed", header.seed},
            {"placement", header.placement},
            {"num_ranks", header.num_ranks},
            {"num_steps", header.num_steps},
            {"num_microbatches", header.num_microbatches},
            {"tokens_per_step", header.tokens_per_step},
            {"samples_per_step", header.samples_per_step},
            {"step_flops", header.step_flops},
            {"flop_convention", header.flop_convention},
            {"island_flops_limit", header.island_flops_limit},
            {"peak_flops_per_gpu", header.peak_flops_per_gpu},
            {"expanded", header.expanded},
            {"folded", header.folded}};
  const auto convert = [](const auto& entry) { return ToJson(entry); };
  json["modules"] = ListOf(header.modules, convert);
  json["boundaries"] = ListOf(header.boundaries, convert);
  json["roles"] = ListOf(header.roles, convert);
  json["classes"] = ListOf(header.classes, convert);
  json["groups"] = header.groups;
  json["assumptions"] = header.assumptions;
  json["measurement"] = ToJson(header.measurement);
  return json;
}

Json ToJson(const MemoryPeak& peak) {
  return {{"rank_class", peak.rank_class},
          {"time_ps", peak.time_ps},
          {"peak_bytes", peak.peak_bytes},
          {"reserved_bytes", peak.reserved_bytes},
          {"device_bytes", peak.device_bytes},
          {"capacity_bytes", peak.capacity_bytes},
          {"verdict", peak.verdict},
          {"moment", peak.moment},
          {"phase", peak.phase},
          {"categories", peak.categories}};
}

Json ToJson(const ImposedWait& wait) {
  return {{"rank_class", wait.rank_class},
          {"op", wait.op},
          {"start_ps", wait.start_ps},
          {"end_ps", wait.end_ps},
          {"straggler", wait.straggler}};
}

Json ToJson(const Slowdown& slowdown) {
  return {{"rank_class", slowdown.rank_class},
          {"op", slowdown.op},
          {"duration_ps", slowdown.duration_ps}};
}

Json ToJson(const KernelRun& kernel) {
  return {{"rank_class", kernel.rank_class},
          {"op", kernel.op},
          {"name", kernel.name},
          {"stream", kernel.stream},
          {"start_ps", kernel.start_ps},
          {"end_ps", kernel.end_ps}};
}

Json ToJson(const Trailer& trailer) {
  const auto convert = [](const auto& entry) { return ToJson(entry); };
  Json json{{"end_ps", trailer.end_ps}, {"step_end_ps", trailer.step_end_ps}};
  json["memory"] = ListOf(trailer.memory, convert);
  json["waits"] = ListOf(trailer.waits, convert);
  json["slowdowns"] = ListOf(trailer.slowdowns, convert);
  json["num_ops"] = trailer.num_ops;
  json["simulated_ranks"] = trailer.simulated_ranks;
  json["folded"] = trailer.folded;
  if (!trailer.kernels.empty()) {
    json["kernel_names"] = trailer.kernel_names;
    json["kernels"] = ListOf(trailer.kernels, convert);
  }
  return json;
}

}  // namespace

void JsonLinesWriter::OnHeader(const Header& header) {
  file_.Write(Dump(Json{{"header", ToJson(header)}}) + "\n");
}

void JsonLinesWriter::OnEvents(std::span<const Event> events) {
  for (const Event& event : events) {
    file_.Write(fmt::format(
        R"({{"event":{{"rank_class":{},"op":{},"inner":{},"issue_ps":{},"start_ps":{},"end_ps":{}}}}})"
        "\n",
        event.rank_class, event.op, event.inner, event.issue_ps, event.start_ps, event.end_ps));
  }
}

void JsonLinesWriter::OnMemory(std::span<const MemoryCounter> counters) {
  for (const MemoryCounter& counter : counters) {
    file_.Write(fmt::format(R"({{"memory":{{"rank_class":{},"time_ps":{},"bytes":{}}}}})"
                            "\n",
                            counter.rank_class, counter.time_ps, counter.bytes));
  }
}

void JsonLinesWriter::OnTrailer(const Trailer& trailer) {
  file_.Write(Dump(Json{{"trailer", ToJson(trailer)}}) + "\n");
  file_.Commit();
}

}  // namespace isthmus::traces::internal
