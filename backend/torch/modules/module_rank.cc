#include "backend/torch/modules/module_rank.h"

#include <fmt/format.h>

#include "backend/torch/dtype.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

at::ScalarType TypeOf(const plan::Module& module) {
  if (module.settings.precision == plan::DType::kFp8) {
    throw base::Error(
        fmt::format("error: {}: precision fp8 is known but not built for real ranks\n  hint: use "
                    "bf16, fp16 or fp32",
                    module.name));
  }
  return ToTorch(module.settings.precision);
}

void Require(bool is_so, const plan::Module& module, const std::string& what) {
  if (is_so) return;
  throw base::Error(fmt::format("error: {}: real ranks need {}", module.name, what));
}

/// Chunks of the decoder's sequences, and heads where they are exchanged for tokens.
void RefuseContextParallel(const plan::Module& module, const plan::Program& program, int tp,
                           int cp) {
  if (cp == 1) return;
  if (module.kind == plan::ModuleKind::kDecoder) {
    Require(program.workload.sequence_length % (2L * cp) == 0, module,
            fmt::format("a sequence_length that 2 · cp = {} divides", 2 * cp));
  }
  if (module.settings.context_parallel == plan::ContextParallel::kAllToAll) {
    Require(module.transformer.num_kv_heads % (std::int64_t{tp} * cp) == 0, module,
            fmt::format("num_kv_heads that tp · cp = {} divides for context_parallel: all_to_all",
                        tp * cp));
  }
}

void RefuseUnknown(const plan::Module& module, int tp) {
  const plan::Transformer& t = module.transformer;
  Require(t.num_heads % tp == 0 && t.num_kv_heads % tp == 0 && t.ffn_hidden % tp == 0, module,
          fmt::format("a tp, here {}, that divides num_heads {}, num_kv_heads {} and ffn_hidden {}",
                      tp, t.num_heads, t.num_kv_heads, t.ffn_hidden));
  const bool encoder = module.kind != plan::ModuleKind::kDecoder;
  Require(!encoder || module.input_width > 0, module, "an input_width: what goes into its tokens");
  Require(t.hidden_dropout == 0.0, module, "hidden_dropout: 0, since they have no dropout");
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
  RefuseContextParallel(placed.module, program, rank.tp->size(), rank.cp->size());
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
