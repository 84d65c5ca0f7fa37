#include "tests/parity/expect_parity.h"

namespace isthmus::tests {
namespace {

using plan::Placement;

/// FP32 on ranks and reference: loss within 1e-5, each gradient within 1e-5 after the first step
/// and 1e-3 after the twentieth. No gradient is zero in exact arithmetic here (linear layers have
/// no biases), but for positions that no token has, which are compared to be exactly zero.
void ExpectParityInFp32(const plan::Job& job) {
  const ParityOutcome outcome = RunParity({.job = job, .training = ParityTraining()}, at::kFloat);
  PrintWorst(outcome);
  EXPECT_LT(outcome.worst().loss, 1e-5);
  EXPECT_LT(outcome.steps.front().gradient, 1e-5);
  EXPECT_LT(outcome.steps.back().gradient, 1e-3);
  EXPECT_THAT(outcome.missing, testing::IsEmpty());
}

plan::Job JobInFp32(Placement placement, std::vector<plan::Module> modules) {
  return ParityJob(placement, std::move(modules), plan::DType::kFp32);
}

TEST(ParityInFp32, Homogeneous) {
  ExpectParityInFp32(
      JobInFp32(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm({.tp = 4})}));
}
TEST(ParityInFp32, Colocated) {
  ExpectParityInFp32(JobInFp32(Placement::kColocated,
                               {TinyEncoder("vision", {.dp = 4}), TinyLlama({.tp = 2, .dp = 2})}));
}
TEST(ParityInFp32, ColocatedCp2) {
  ExpectParityInFp32(JobInFp32(Placement::kColocated,
                               {TinyEncoder("vision", {.dp = 4}), TinyLlm({.tp = 2, .cp = 2})}));
}
TEST(ParityInFp32, Apart) {
  ExpectParityInFp32(JobInFp32(Placement::kNonColocated,
                               {TinyEncoder("vision", {.dp = 2}), TinyLlm({.tp = 2, .pp = 2})}));
}

}  // namespace
}  // namespace isthmus::tests
