#include "plan/model/kernel.h"

#include "base/check.h"

namespace isthmus::plan {

base::Bytes BytesOf(DType dtype) {
  switch (dtype) {
    case DType::kFp8:
      return base::Bytes(1);
    case DType::kBf16:
    case DType::kFp16:
      return base::Bytes(2);
    case DType::kFp32:
      return base::Bytes(4);
    case DType::kFp64:
      return base::Bytes(8);
  }
  ISTHMUS_CHECK(false, "no such dtype: {}", static_cast<int>(dtype));
}

const char* ToText(DType dtype) {
  switch (dtype) {
    case DType::kFp8:
      return "fp8";
    case DType::kBf16:
      return "bf16";
    case DType::kFp16:
      return "fp16";
    case DType::kFp32:
      return "fp32";
    case DType::kFp64:
      return "fp64";
  }
  ISTHMUS_CHECK(false, "no such dtype: {}", static_cast<int>(dtype));
}

const char* RateKey(DType dtype) { return ToText(dtype == DType::kFp16 ? DType::kBf16 : dtype); }

base::Flops FlopsOf(const Gemm& gemm) {
  return base::Flops(2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                     static_cast<double>(gemm.k));
}

base::Flops FlopsOf(const Attention& attention) {
  const double forward =
      4.0 * static_cast<double>(attention.num_sequences) * static_cast<double>(attention.heads) *
      static_cast<double>(attention.query_len) * static_cast<double>(attention.kv_len) *
      static_cast<double>(attention.head_dim) * (attention.causal ? 0.5 : 1.0);
  return base::Flops(attention.backward ? 2.5 * forward : forward);
}

const char* ToText(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::kElementwise:
      return "elementwise";
    case MemoryClass::kNorm:
      return "norm";
    case MemoryClass::kNormBackward:
      return "norm_backward";
    case MemoryClass::kCast:
      return "cast";
    case MemoryClass::kCrossEntropy:
      return "cross_entropy";
    case MemoryClass::kOptimizer:
      return "optimizer";
    case MemoryClass::kHeadNorm:
      return "head_norm";
    case MemoryClass::kHeadNormBackward:
      return "head_norm_backward";
  }
  ISTHMUS_CHECK(false, "no such memory class: {}", static_cast<int>(memory_class));
}

const char* ToText(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kCudnn:
      return "cudnn";
    case AttentionKernel::kFlash3:
      return "flash3";
    case AttentionKernel::kFlash2:
      return "flash2";
    case AttentionKernel::kFlash1:
      return "flash1";
    case AttentionKernel::kUnfused:
      return "unfused";
  }
  ISTHMUS_CHECK(false, "no such attention kernel: {}", static_cast<int>(kernel));
}

std::string ToText(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kAllToAllV:
      return "all_to_all_v";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kRingExchange:
      return "ring_exchange";
  }
  ISTHMUS_CHECK(false, "no such collective: {}", static_cast<int>(kind));
}

const char* ToText(MemoryMoment moment) {
  switch (moment) {
    case MemoryMoment::kForward:
      return "forward";
    case MemoryMoment::kTurn:
      return "turn";
    case MemoryMoment::kLoss:
      return "loss";
    case MemoryMoment::kEndOfBackward:
      return "end of backward";
    case MemoryMoment::kRecompute:
      return "recompute";
    case MemoryMoment::kOptimizerStep:
      return "optimizer step";
  }
  ISTHMUS_CHECK(false, "no such moment: {}", static_cast<int>(moment));
}

base::Flops ExecutedFlops(const Work& work) {
  base::Flops total{0.0};
  for (const RepeatedSegments& part : work.parts) {
    base::Flops once{0.0};
    for (const Segment& segment : part.segments) {
      for (const Kernel& kernel : segment.kernels) {
        if (const Gemm* gemm = std::get_if<Gemm>(&kernel)) once += FlopsOf(*gemm);
        if (const Attention* attention = std::get_if<Attention>(&kernel))
          once += FlopsOf(*attention);
      }
    }
    total += once * part.count;
  }
  return total;
}

}  // namespace isthmus::plan
