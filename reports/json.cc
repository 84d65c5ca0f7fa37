#include "reports/json.h"

#include <nlohmann/json.hpp>

#include "reports/internal/json_text.h"
#include "reports/internal/other_jobs.h"

namespace isthmus::reports {
namespace {

using Json = nlohmann::ordered_json;

Json SharesJson(const TimeShares& shares) {
  Json json = Json::object();
  for (std::size_t use = 0; use < shares.size(); ++use) {
    json[ToText(static_cast<TimeUse>(use))] = shares[use];
  }
  return json;
}

Json MemoryJson(const Figures& figures) {
  Json rows = Json::array();
  for (const MemoryFigure& memory : figures.memory) {
    Json categories = Json::object();
    for (const auto& [name, bytes] : memory.categories) categories[name] = bytes;
    rows.push_back({{"role", memory.role},
                    {"ranks", memory.ranks},
                    {"peak_bytes", memory.peak_bytes},
                    {"capacity_bytes", memory.capacity_bytes},
                    {"fits", memory.fits()},
                    {"verdict", memory.verdict},
                    {"categories", std::move(categories)},
                    {"allocated_bytes", memory.allocated_bytes},
                    {"reserved_bytes", memory.reserved_bytes},
                    {"device_bytes", memory.peak_bytes},
                    {"lowest_peak_bytes", memory.lowest_peak_bytes},
                    {"fullest_rank", memory.fullest_rank},
                    {"moment", memory.moment},
                    {"phase", memory.phase}});
  }
  return rows;
}

Json BoundariesJson(const Figures& figures) {
  const auto known = [&](double seconds) {
    return figures.has_times ? Json(seconds) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const BoundaryFigure& boundary : figures.boundaries) {
    rows.push_back({{"from", boundary.from},
                    {"to", boundary.to},
                    {"kind", boundary.kind},
                    {"bytes_forward", boundary.bytes_forward},
                    {"bytes_backward", boundary.bytes_backward},
                    {"exposed_s", known(boundary.exposed_s)},
                    {"worst_exposed_s", known(boundary.worst_exposed_s)}});
  }
  return rows;
}

Json PathJson(const Figures& figures) {
  Json rows = Json::array();
  for (const PathShare& share : figures.critical_path) {
    rows.push_back(
        {{"category", share.category}, {"module", share.module}, {"share", share.share}});
  }
  return rows;
}

Json SegmentsJson(const Figures& figures) {
  constexpr double kPicosecondsPerSecond = 1e12;
  Json rows = Json::array();
  for (const PathSegment& segment : figures.longest_segments) {
    Json row = {{"category", segment.category},
                {"module", segment.module},
                {"op", segment.op},
                {"rank", segment.rank},
                {"microbatch", nullptr},
                {"start_s", static_cast<double>(segment.start_ps) / kPicosecondsPerSecond},
                {"end_s", static_cast<double>(segment.end_ps) / kPicosecondsPerSecond}};
    if (segment.microbatch >= 0) row["microbatch"] = segment.microbatch;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json EngineJson(const Figures& figures) {
  Json engine = {{"ops", figures.num_ops},
                 {"folded", figures.folded},
                 {"simulated_ranks", figures.simulated_ranks}};
  if (figures.cost) {
    engine["wall_s"] = figures.cost->wall_s;
    engine["peak_rss_bytes"] = figures.cost->peak_rss_bytes;
  }
  return engine;
}

Json ModulesJson(const Figures& figures) {
  Json rows = Json::array();
  for (const traces::ModuleRecord& module : figures.modules) {
    rows.push_back({{"name", module.name},
                    {"kind", module.kind},
                    {"layout", module.layout},
                    {"first_rank", module.first_rank},
                    {"num_ranks", module.num_ranks},
                    {"parameters", module.parameters}});
  }
  return rows;
}

Json RolesJson(const Figures& figures) {
  Json rows = Json::array();
  for (const RoleTime& role : figures.roles) {
    rows.push_back(
        {{"role", role.role}, {"ranks", role.ranks}, {"shares", SharesJson(role.shares)}});
  }
  return rows;
}

Json IslandsJson(const Figures& figures) {
  Json rows = Json::array();
  for (const IslandFigure& island : figures.islands) {
    rows.push_back({{"module", island.module},
                    {"ranks", island.ranks},
                    {"utilisation", island.utilisation},
                    {"tflops_per_gpu", island.tflops_per_gpu},
                    {"needed_tflops_per_gpu", island.needed_tflops_per_gpu},
                    {"limit_tflops_per_gpu", island.limit_tflops_per_gpu},
                    {"saturated", island.is_saturated()}});
  }
  return rows;
}

Json TrafficJson(const Traffic& traffic) {
  Json json = Json::object();
  for (const auto& [purpose, bytes] : traffic) json[purpose] = bytes;
  return json;
}

Json KindsJson(const LinkFigures& links) {
  Json rows = Json::array();
  for (const LinkKindUse& kind : links.kinds) {
    rows.push_back({{"kind", kind.kind},
                    {"links", kind.num_links},
                    {"bytes", kind.bytes},
                    {"traffic_bytes", TrafficJson(kind.traffic)},
                    {"utilisation", kind.utilisation},
                    {"highest_utilisation", kind.highest_utilisation},
                    {"utilisation_by_bin", kind.over_time}});
  }
  return rows;
}

Json HottestJson(const LinkFigures& links) {
  Json rows = Json::array();
  for (const LinkUse& use : links.hottest) {
    rows.push_back({{"kind", use.kind},
                    {"from", use.from},
                    {"to", use.to},
                    {"bandwidth_Bps", use.bytes_per_second},
                    {"bytes", use.bytes},
                    {"traffic_bytes", TrafficJson(use.traffic)},
                    {"utilisation", use.utilisation},
                    {"busy_s", use.busy_s},
                    {"utilisation_by_bin", use.over_time}});
  }
  return rows;
}

Json LinksJson(const LinkFigures& links) {
  const auto cause = [](const FlowCause& flows) {
    Json json = {{"module", flows.module}, {"purpose", flows.purpose}, {"action", flows.action}};
    if (!flows.job.empty()) json["job"] = flows.job;
    return json;
  };
  Json losses = Json::array();
  for (const LinkLossFigure& loss : links.losses) {
    losses.push_back(
        {{"victim", cause(loss.victim)},
         {"culprit", cause(loss.culprit)},
         {"kind", loss.kind},
         {"links", loss.num_links},
         {"flows", loss.num_flows},
         {"lost_s", loss.lost_s},
         {"longest_s", loss.longest_s},
         {"worst_link",
          {{"from", loss.worst_from}, {"to", loss.worst_to}, {"lost_s", loss.worst_lost_s}}}});
  }
  return {{"end_s", links.end_s},
          {"bin_s", links.bin_s},
          {"kinds", KindsJson(links)},
          {"hottest", HottestJson(links)},
          {"slow_flows", links.num_slow_flows},
          {"lost_s", links.lost_s},
          {"losses", std::move(losses)}};
}

Json ProvenanceJson(const Figures& figures) {
  return {{"program_hash", figures.program_hash}, {"profile", figures.profile_name},
          {"profile_hash", figures.profile_hash}, {"commit", figures.commit},
          {"machine", figures.machine},           {"seed", figures.seed}};
}

}  // namespace

std::string RenderJson(const Figures& figures) {
  Json json = Json::object();
  json["scenario"] = {{"name", figures.scenario_name}, {"hash", figures.scenario_hash}};
  json["placement"] = figures.placement;
  json["num_ranks"] = figures.num_ranks;
  const auto known = [&](double figure) {
    return figures.has_times ? Json(figure) : Json(nullptr);
  };
  json["step_time_s"] = known(figures.step_time_s);
  json["forward_backward_s"] = known(figures.forward_backward_s);
  json["model_tflops_per_gpu"] = known(figures.model_tflops_per_gpu);
  json["mfu"] = known(figures.mfu);
  json["hfu"] = known(figures.hfu);
  json["tokens_per_s"] = known(figures.tokens_per_s);
  json["samples_per_s"] = known(figures.samples_per_s);
  json["band"] = nullptr;
  if (figures.band) {
    json["band"] = {{"low_step_time_s", figures.band->low_step_time_s},
                    {"high_step_time_s", figures.band->high_step_time_s}};
  }
  if (figures.network) {
    json["network"] = {{"flows", figures.network->num_flows},
                       {"shared_flows", figures.network->num_shared_flows}};
  }
  if (!figures.other_jobs.empty()) json["other_jobs"] = OtherJobsJson(figures.other_jobs);
  if (figures.links) json["links"] = LinksJson(*figures.links);
  if (figures.duty_relief) {
    json["duty_relief"] = {{"clock_ratio", figures.duty_relief->clock_ratio},
                           {"step_time_s", figures.duty_relief->step_time_s}};
  }
  json["shares"] = figures.has_times ? SharesJson(figures.shares) : Json(nullptr);
  json["memory"] = MemoryJson(figures);
  json["boundaries"] = BoundariesJson(figures);
  json["islands"] = IslandsJson(figures);
  json["critical_path"] = PathJson(figures);
  json["engine"] = EngineJson(figures);
  json["assumptions"] = figures.assumptions;
  json["kind"] = traces::ToText(figures.kind);
  json["flop_convention"] = figures.flop_convention;
  json["peak_tflops_per_gpu"] = figures.peak_tflops_per_gpu;
  json["num_steps"] = figures.num_steps;
  json["num_microbatches"] = figures.num_microbatches;
  json["modules"] = ModulesJson(figures);
  json["exposed_comm_by_kind"] = Json::object();
  for (const ExposedComm& exposed : figures.exposed) {
    json["exposed_comm_by_kind"][exposed.kind + "_s"] = exposed.seconds;
  }
  json["shares_by_role"] = RolesJson(figures);
  json["critical_segments"] = SegmentsJson(figures);
  json["provenance"] = ProvenanceJson(figures);
  return JsonText(json);
}

}  // namespace isthmus::reports
