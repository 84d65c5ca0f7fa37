#include "backend/torch/modules/module_rank.h"

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::backend {
namespace {

at::ScalarType TypeOf(const plan::Module& module) {
  switch (module.settings.precision) {
    case plan::DType::kBf16:
      return at::kBFloat16;
    case plan::DType::kFp16:
      return at::kHalf;
    case plan::DType::kFp32:
      return at::kFloat;
    case plan::DType::kFp64:
      return at::kDouble;
    case plan::DType::kFp8:
      break;
  }
  throw base::Error(
      fmt::format("error: {}: precision fp8 is known but not built for real ranks\n  hint: use "
                  "bf16, fp16 or fp32",
                  module.name));
}

void RequireDivides(const plan::Module& module, const char* what, std::int64_t value, int tp) {
  if (value % tp == 0) return;
  throw base::Error(fmt::format("error: {}: real ranks need a tp that divides {} {}, not {}",
                                module.name, what, value, tp));
}

void RefuseUnknown(const plan::Module& module, int tp) {
  const plan::Transformer& t = module.transformer;
  RequireDivides(module, "num_heads", t.num_heads, tp);
  RequireDivides(module, "num_kv_heads", t.num_kv_heads, tp);
  RequireDivides(module, "ffn_hidden", t.ffn_hidden, tp);
  if (t.hidden_dropout > 0.0) {
    throw base::Error(
        fmt::format("error: {}: dropout is known but not built for real ranks\n  hint: set "
                    "hidden_dropout: 0",
                    module.name));
  }
}

}  // namespace

ModuleRank DescribeModuleRank(const plan::Program& program, const ChunkOptions& options,
                              Communicators& communicators) {
  const plan::PlacedModule& placed = program.modules[options.module];
  ModuleRank rank{.module = &placed.module};
  rank.tp = &communicators.Inside(options.module, plan::kTp);
  RefuseUnknown(placed.module, rank.tp->size());
  rank.alone = std::make_shared<Communicator>("alone", std::vector<base::Rank>{options.rank},
                                              options.rank, nullptr);
  // The tokens of a homogeneous encoder are not divided by cp.
  const bool divided = rank.is_decoder() || program.placement != plan::Placement::kHomogeneous;
  rank.cp = divided ? &communicators.Inside(options.module, plan::kCp) : rank.alone.get();
  rank.sequence_parallel = rank.tp->size() > 1 && placed.module.settings.sequence_parallel;
  rank.overlaps = placed.module.settings.tp_overlap != plan::TpOverlap::kNone;
  rank.dtype = TypeOf(placed.module);
  rank.statistics = rank.dtype == at::kDouble ? at::kDouble : at::kFloat;
  rank.device = options.device;
  rank.sequence_length = program.workload.sequence_length;
  rank.anchor = at::empty({0}, at::kFloat).set_requires_grad(true);
  return rank;
}

}  // namespace isthmus::backend
