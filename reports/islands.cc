#include "reports/islands.h"

#include <algorithm>

namespace isthmus::reports {
namespace {

bool Overlap(const traces::ModuleRecord& a, const traces::ModuleRecord& b) {
  return a.first_rank < b.first_rank + b.num_ranks && b.first_rank < a.first_rank + a.num_ranks;
}

}  // namespace

void Islands::OnHeader(const traces::Header& header) {
  const auto is_decoder = [](const auto& module) { return module.kind == "decoder"; };
  const auto decoder = std::find_if(header.modules.begin(), header.modules.end(), is_decoder);
  if (decoder == header.modules.end()) return;
  decoder_ = static_cast<std::uint16_t>(decoder - header.modules.begin());
  for (std::size_t index = 0; index < header.modules.size(); ++index) {
    const traces::ModuleRecord& module = header.modules[index];
    if (index == decoder_ || Overlap(module, *decoder)) continue;
    islands_.push_back({.figure = {.module = module.name,
                                   .ranks = module.num_ranks,
                                   .limit_tflops_per_gpu = header.island_flops_limit / 1e12},
                        .module = static_cast<std::uint16_t>(index)});
  }
  if (islands_.empty()) return;
  for (const traces::RankClass& rank_class : header.classes)
    role_of_class_.push_back(rank_class.role);
  busy_ps_.assign(header.modules.size(), std::vector<std::int64_t>(header.classes.size(), 0));
  for (const traces::RoleRecord& role : header.roles) {
    std::vector<bool>& is_model = is_model_.emplace_back();
    std::vector<std::uint16_t>& modules = modules_.emplace_back();
    std::vector<double> flops(header.modules.size(), 0);
    for (const traces::OpRecord& op : role.ops) {
      is_model.push_back(op.kind == "compute" && op.module < header.modules.size());
      modules.push_back(op.module);
      if (is_model.back()) flops[op.module] += op.hardware_flops;
    }
    for (Island& island : islands_) island.flops = std::max(island.flops, flops[island.module]);
  }
}

void Islands::OnEvents(std::span<const traces::Event> events) {
  if (islands_.empty()) return;
  for (const traces::Event& event : events) {
    const std::uint32_t role = role_of_class_[event.rank_class];
    if (event.inner != 0 || !is_model_[role][event.op]) continue;
    busy_ps_[modules_[role][event.op]][event.rank_class] += event.end_ps - event.start_ps;
  }
}

std::vector<IslandFigure> Islands::figures() const {
  constexpr double kSecond = 1e12;  // picoseconds
  constexpr double kTera = 1e12;
  std::vector<IslandFigure> figures;
  for (const Island& island : islands_) {
    const double llm = static_cast<double>(std::ranges::max(busy_ps_[decoder_])) / kSecond;
    const double own = static_cast<double>(std::ranges::max(busy_ps_[island.module])) / kSecond;
    IslandFigure figure = island.figure;
    if (llm > 0) {
      figure.utilisation = own / llm;
      figure.needed_tflops_per_gpu = island.flops / llm / kTera;
    }
    if (own > 0) figure.tflops_per_gpu = island.flops / own / kTera;
    figures.push_back(figure);
  }
  return figures;
}

}  // namespace isthmus::reports
