#include "sim/cost/compute_model.h"

#include <variant>

namespace isthmus::sim {

int NumLaunches(const plan::Kernel& kernel) {
  if (const auto* gemm = std::get_if<plan::Gemm>(&kernel)) {
    return gemm->m > 0 && gemm->n > 0 && gemm->k > 0 ? 1 : 0;
  }
  if (const auto* attention = std::get_if<plan::Attention>(&kernel)) {
    const bool empty = attention->num_sequences == 0 || attention->heads == 0 ||
                       attention->query_len == 0 || attention->kv_len == 0;
    return empty ? 0 : 1;
  }
  const auto& memory = std::get<plan::MemoryBound>(kernel);
  return memory.bytes > base::Bytes(0) ? memory.launches : 0;
}

}  // namespace isthmus::sim
