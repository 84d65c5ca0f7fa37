#include <string>
#include <vector>

#include <fmt/format.h>

#include "plan/build/pipeline_load.h"
#include "scenarios/internal/resolve.h"

namespace isthmus::scenarios::internal {
namespace {

double ValueOr(const profiles::Profile& profile, std::string_view key, std::string_view unit,
               double otherwise) {
  return profile.has(key) ? profile.Value(key, unit) : otherwise;
}

// Sustained where the profile knows it, else as the data sheet has it; without either a device of
// the usual balance. Attention counts at the rate of its backward, which is most of it.
// One chip has one clock: a module of fp8 products runs all of its kernels at theirs.
plan::DeviceRates RatesOf(const profiles::Profile& profile, const plan::ModuleSettings& settings) {
  const bool is_fp8 = settings.precision == plan::DType::kFp8;
  const double clock = ValueOr(profile, is_fp8 ? "clock.fp8.ratio" : "clock.bf16.ratio", "1", 1);
  const double sheet = ValueOr(profile, "device.peak_rate.bf16", "FLOP/s", 1e15);
  const double sheet_fp8 = ValueOr(profile, "device.peak_rate.fp8", "FLOP/s", 2 * sheet);
  const double products = ValueOr(profile, "gemm.bf16.peak_rate", "FLOP/s", sheet);
  const std::string core = fmt::format("attention.{}", plan::ToText(settings.attention));
  const double link = ValueOr(profile, "device.nvlink_bandwidth", "B/s", 450e9);
  return {.products_16bit = products * clock,
          .products_fp8 = ValueOr(profile, "gemm.fp8.peak_rate", "FLOP/s", sheet_fp8) * clock,
          .attention = ValueOr(profile, core + ".backward.causal.rate", "FLOP/s", products) * clock,
          .memory = ValueOr(profile, "device.memory_bandwidth", "B/s", 3.3e12) *
                    ValueOr(profile, "memory.elementwise.efficiency", "1", 1),
          .link = ValueOr(profile, "collective.node.all_gather.8.bandwidth", "B/s", link)};
}

}  // namespace

void SplitLayers(Resolution& resolution, const profiles::Profile& profile, plan::Job& job) {
  for (std::size_t index = 0; index < job.modules.size(); ++index) {
    ModuleSpec& module = resolution.spec.modules[index];
    LayoutSpec& layout = module.layout;
    const bool is_asked = layout.split == LayerSplit::kSearch && layout.stage_layers.empty();
    if (module.inherits_layout || !is_asked || layout.pp == 1) continue;
    const std::vector<int> layers = plan::BalancedSplit(
        plan::LoadOf(job, static_cast<int>(index), RatesOf(profile, module.settings)));
    job.modules[index].layout->stage_layers = layers;
    layout.stage_layers.assign(layers.begin(), layers.end());
    resolution.derived.insert(ModulePath(module, "layout.stage_layers"));
  }
}

}  // namespace isthmus::scenarios::internal
