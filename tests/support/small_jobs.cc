#include "tests/support/small_jobs.h"

#include <utility>

namespace isthmus::tests {
namespace {

using plan::AxisOrder;
using plan::Job;
using plan::Module;
using plan::Placement;

void AddHomogeneous(std::vector<Job>& jobs) {
  constexpr Placement kPlacement = Placement::kHomogeneous;
  jobs.push_back(SmallJob("one rank", kPlacement, {SmallLlm({})}));
  jobs.push_back(SmallJob("tp2 dp2", kPlacement, {SmallLlm({.tp = 2, .dp = 2})}));
  jobs.push_back(SmallJob("pp2 dp2, stages consecutive", kPlacement,
                          {SmallLlm({.pp = 2, .dp = 2, .order = AxisOrder::kTpCpPpDp})}));
  jobs.push_back(
      SmallJob("tp2 cp2 pp2 dp2", kPlacement, {SmallLlm({.tp = 2, .cp = 2, .pp = 2, .dp = 2})}));
  jobs.push_back(
      SmallJob("pp4, uneven", kPlacement, {SmallLlm({.pp = 4, .stage_layers = {1, 3, 3, 1}})}));
  jobs.push_back(SmallJob("pp2 vpp2 dp2, deferred head", kPlacement,
                          {SmallLlm({.pp = 2, .vpp = 2, .dp = 2})}));
  jobs.back().schedule.defer_embedding_wgrad = 2;
  jobs.push_back(
      SmallJob("pp3 vpp2, uneven groups and stages", kPlacement,
               {SmallLlm({.tp = 2, .pp = 3, .vpp = 2, .stage_layers = {1, 1, 2, 2, 1, 1}})}));
  Module recomputed = SmallLlm({.tp = 2, .dp = 2});
  recomputed.settings.recompute = plan::Recompute::kFull;
  recomputed.settings.precision = plan::DType::kFp16;
  jobs.push_back(SmallJob("recompute, fp16, no overlap", kPlacement, {recomputed}));
  jobs.back().optimizer = {.overlap_grad_reduce = false, .overlap_param_gather = false};
  Module instances = SmallLlm({.dp = 4});
  instances.settings.optimizer_instances = 2;
  jobs.push_back(SmallJob("two optimizer instances", kPlacement, {instances}));
  jobs.push_back(SmallJob("two steps, a layer per op", kPlacement, {SmallLlm({.pp = 2})}));
  jobs.back().num_steps = 2;
  jobs.back().schedule.block_layers = 1;
  jobs.push_back(SmallJob("encoder inside, pp2", kPlacement,
                          {SmallEncoder("vision"), SmallLlm({.tp = 2, .pp = 2, .dp = 2})}));
  jobs.push_back(SmallJob("encoder inside, pp2 vpp2", kPlacement,
                          {SmallEncoder("vision"), SmallLlm({.pp = 2, .vpp = 2, .dp = 2})}));
  Module frozen = SmallEncoder("vision");
  frozen.settings.frozen = true;
  jobs.push_back(
      SmallJob("frozen encoder inside, cp2", kPlacement, {frozen, SmallLlm({.cp = 2, .dp = 2})}));
}

void AddColocated(std::vector<Job>& jobs) {
  constexpr Placement kPlacement = Placement::kColocated;
  const auto add = [&](std::string name, const plan::Layout& vision, const plan::Layout& llm) {
    jobs.push_back(
        SmallJob(std::move(name), kPlacement, {SmallEncoder("vision", vision), SmallLlm(llm)}));
  };
  add("colocated, equal", {.tp = 2, .dp = 2}, {.tp = 2, .dp = 2});
  add("colocated, fan-in", {.dp = 4}, {.tp = 2, .dp = 2});
  add("colocated, fan-out", {.tp = 4}, {.tp = 2, .dp = 2});
  add("colocated, fan-in, pp2", {.dp = 8}, {.tp = 2, .pp = 2, .dp = 2});
  add("colocated, fan-in, pp2 vpp4", {.dp = 4}, {.pp = 2, .vpp = 4, .dp = 2});
  add("colocated, fan-in, pp2, stages consecutive", {.dp = 8},
      {.tp = 2, .pp = 2, .dp = 2, .order = AxisOrder::kTpCpPpDp});
  add("colocated, lanes straddle shards", {.tp = 2, .dp = 3}, {.tp = 3, .dp = 2});
  add("colocated, cp on both sides", {.cp = 2, .dp = 2}, {.cp = 2, .dp = 2});
  Module offloaded = SmallEncoder("vision", {.dp = 4});
  offloaded.settings.offload_parameters = true;
  jobs.push_back(SmallJob(
      "colocated, two encoders, offload", kPlacement,
      {offloaded, SmallEncoder("sound", {.tp = 2, .dp = 2}), SmallLlm({.tp = 2, .dp = 2})}));
}

void AddNonColocated(std::vector<Job>& jobs) {
  constexpr Placement kPlacement = Placement::kNonColocated;
  const auto add = [&](std::string name, const plan::Layout& vision, plan::Layout llm) {
    llm.first_rank = vision.num_ranks();
    jobs.push_back(
        SmallJob(std::move(name), kPlacement, {SmallEncoder("vision", vision), SmallLlm(llm)}));
  };
  add("apart, equal", {.tp = 2}, {.tp = 2});
  add("apart, fan-in", {.dp = 4}, {.tp = 2, .dp = 2});
  add("apart, fan-out", {.tp = 2}, {.pp = 2, .dp = 4, .order = AxisOrder::kTpCpPpDp});
  add("apart, uneven lanes, encoder pp2", {.pp = 2, .dp = 3}, {.tp = 2, .dp = 2});
  add("apart, cp2", {.tp = 2, .dp = 2}, {.tp = 2, .cp = 2, .dp = 2});
  Module frozen = SmallEncoder("vision", {.tp = 2});
  frozen.settings.frozen = true;
  frozen.settings.backward = plan::BackwardMode::kAbsent;
  jobs.push_back(
      SmallJob("apart, frozen", kPlacement, {frozen, SmallLlm({.pp = 2, .first_rank = 2})}));
  jobs.push_back(UnevenJoin());
}

}  // namespace

std::vector<Job> SmallJobs() {
  std::vector<Job> jobs;
  AddHomogeneous(jobs);
  AddColocated(jobs);
  AddNonColocated(jobs);
  return jobs;
}

}  // namespace isthmus::tests
