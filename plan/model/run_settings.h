#pragma once

#include <cstdint>

/// Ways to run a module that settings and framework releases name.
namespace isthmus::plan {

enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
enum class TpOverlap : std::uint8_t { kNone, kBulk, kUserBuffers };
/// Absent: the encoder's backward does not run (modelling_mimo finding 2); simulation only.
enum class BackwardMode : std::uint8_t { kReal, kAbsent };
/// Cross entropy over a vocabulary-parallel head. Traffic and memory per logit of the rank:
/// kFused (Megatron's own, fused) 34 B and 6 B; kUnfused 50 B and 10 B; kInPlace (Transformer
/// Engine: the gradient overwrites the logits) 34 B and 2 B. modelling_runs §4, modelling_memory
/// §4.
enum class LossKernel : std::uint8_t { kFused, kUnfused, kInPlace };

}  // namespace isthmus::plan
