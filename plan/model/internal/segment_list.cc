#include "plan/model/internal/segment_list.h"

#include <optional>
#include <utility>

namespace isthmus::plan::internal {
namespace {

// The all-gather that feeds a GEMM moves what the GEMM reads: in fp8 with user buffers, bytes.
std::int64_t GatheredElementBytes(const RankShape& rank, const Linear& linear) {
  const bool fp8 = linear.dtype == DType::kFp8 && rank.overlap == TpOverlap::kUserBuffers;
  return fp8 ? 1 : rank.element_bytes;
}

bool IsBlockScaled(const RankShape& rank, const Linear& linear) {
  return linear.dtype == DType::kFp8 && rank.settings->fp8_scaling == Fp8Scaling::kBlock;
}

bool Chunked(const RankShape& rank, const Linear& linear) {
  return linear.chunked && rank.overlap == TpOverlap::kUserBuffers;
}

// All-gather, then the GEMM it feeds: in chunks, or one after the other.
void AddGatherThenGemm(const RankShape& rank, const Linear& linear, const char* gemm_name,
                       const char* gather_name, const Kernel& gemm, std::int64_t width,
                       SegmentList& list) {
  const InnerCollective gather =
      OverTp(CollectiveKind::kAllGather, linear.tokens * width, GatheredElementBytes(rank, linear));
  if (Chunked(rank, linear)) {
    list.Beside(gemm_name, {gemm}, gather, Overlap::kGatherIn);
    return;
  }
  list.Collective(gather_name, gather);
  list.Compute(gemm_name, {gemm});
}

// What makes the partial sums of a row-parallel output, or of a column-parallel dx, whole.
CollectiveKind ReductionKind(const RankShape& rank) {
  return rank.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
}

}  // namespace

void SegmentList::Compute(const char* name, std::vector<Kernel> kernels) {
  if (kernels.empty()) return;
  segments_.push_back({name, std::move(kernels), std::nullopt, Overlap::kNone});
}

void SegmentList::Collective(const char* name, const InnerCollective& collective) {
  segments_.push_back({name, {}, collective, Overlap::kNone});
}

void SegmentList::Beside(const char* name, std::vector<Kernel> kernels,
                         const InnerCollective& collective, Overlap overlap) {
  segments_.push_back({name, std::move(kernels), collective, overlap});
}

Kernel Moves(MemoryClass memory_class, std::int64_t bytes, int launches) {
  return MemoryBound{memory_class, base::Bytes(bytes), launches};
}

Kernel ForwardGemm(const RankShape& rank, const Linear& linear) {
  return Gemm{linear.tokens,
              linear.out,
              linear.in,
              linear.dtype,
              base::Bytes(rank.element_bytes * linear.tokens * linear.out),
              false,
              rank.in_fp8_run(),
              IsBlockScaled(rank, linear)};
}

Kernel InputGemm(const RankShape& rank, const Linear& linear) {
  return Gemm{linear.tokens,
              linear.in,
              linear.out,
              linear.dtype,
              base::Bytes(rank.element_bytes * linear.tokens * linear.in),
              linear.dtype == DType::kFp8,
              rank.in_fp8_run(),
              IsBlockScaled(rank, linear)};
}

std::vector<Kernel> WeightKernels(const RankShape& rank, const Linear& linear) {
  const std::int64_t main_gradient = BytesOf(rank.settings->gradient_dtype).value();
  const bool fuses = rank.settings->framework->kernels->fuses_gradient_accumulation;
  const std::int64_t elements = linear.out * linear.in;
  const Gemm gemm{linear.out,
                  linear.in,
                  linear.tokens,
                  linear.dtype,
                  base::Bytes((fuses ? 2 * main_gradient : rank.element_bytes) * elements),
                  linear.dtype == DType::kFp8,
                  rank.in_fp8_run(),
                  IsBlockScaled(rank, linear)};
  if (fuses) return {gemm};
  return {gemm,
          Moves(MemoryClass::kElementwise, (rank.element_bytes + 2 * main_gradient) * elements)};
}

InnerCollective OverTp(CollectiveKind kind, std::int64_t elements, std::int64_t element_bytes) {
  return {kind, kTp, base::Bytes(elements * element_bytes)};
}

void AddColumnForward(const RankShape& rank, const Linear& linear, SegmentList& list) {
  if (!rank.sequence_parallel) {
    list.Compute(linear.names.forward, {ForwardGemm(rank, linear)});
    return;
  }
  AddGatherThenGemm(rank, linear, linear.names.forward, linear.names.forward_collective,
                    ForwardGemm(rank, linear), linear.in, list);
}

void AddRowForward(const RankShape& rank, const Linear& linear, SegmentList& list) {
  if (rank.tp == 1) {
    list.Compute(linear.names.forward, {ForwardGemm(rank, linear)});
    return;
  }
  const InnerCollective reduce =
      OverTp(ReductionKind(rank), linear.tokens * linear.out, rank.element_bytes);
  if (Chunked(rank, linear)) {
    list.Beside(linear.names.forward, {ForwardGemm(rank, linear)}, reduce, Overlap::kScatterOut);
    return;
  }
  list.Compute(linear.names.forward, {ForwardGemm(rank, linear)});
  list.Collective(linear.names.forward_collective, reduce);
}

void AddColumnBackward(const RankShape& rank, const Linear& linear, Pass pass, SegmentList& list) {
  const InnerCollective gather = OverTp(CollectiveKind::kAllGather, linear.tokens * linear.in,
                                        GatheredElementBytes(rank, linear));
  const InnerCollective reduce =
      OverTp(ReductionKind(rank), linear.tokens * linear.in, rank.element_bytes);
  const bool gathers = rank.sequence_parallel && pass.weight;
  const bool reduces = rank.tp > 1 && pass.input;
  const bool beside = rank.overlap != TpOverlap::kNone && pass.input && pass.weight;

  if (gathers && !beside) list.Collective(linear.names.wgrad_collective, gather);
  if (pass.input && gathers && beside) {
    list.Beside(linear.names.dgrad, {InputGemm(rank, linear)}, gather, Overlap::kBulk);
  } else if (pass.input) {
    list.Compute(linear.names.dgrad, {InputGemm(rank, linear)});
  }
  if (pass.weight && reduces && beside) {
    list.Beside(linear.names.wgrad, WeightKernels(rank, linear), reduce, Overlap::kBulk);
  } else if (pass.weight) {
    list.Compute(linear.names.wgrad, WeightKernels(rank, linear));
  }
  if (reduces && !beside) list.Collective(linear.names.dgrad_collective, reduce);
}

void AddRowBackward(const RankShape& rank, const Linear& linear, Pass pass, SegmentList& list) {
  if (pass.input && rank.sequence_parallel) {
    AddGatherThenGemm(rank, linear, linear.names.dgrad, linear.names.dgrad_collective,
                      InputGemm(rank, linear), linear.out, list);
  } else if (pass.input) {
    list.Compute(linear.names.dgrad, {InputGemm(rank, linear)});
  }
  if (pass.weight) list.Compute(linear.names.wgrad, WeightKernels(rank, linear));
}

}  // namespace isthmus::plan::internal
