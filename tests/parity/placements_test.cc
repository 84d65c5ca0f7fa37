#include "tests/parity/expect_parity.h"

namespace isthmus::tests {
namespace {

using plan::AxisOrder;
using plan::Placement;

plan::Job Homogeneous(const plan::Layout& llm) {
  return ParityJob(Placement::kHomogeneous, {TinyEncoder("vision"), TinyLlm(llm)});
}

plan::Job Colocated(const plan::Layout& vision, const plan::Layout& llm) {
  return ParityJob(Placement::kColocated, {TinyEncoder("vision", vision), TinyLlm(llm)});
}

plan::Job Apart(const plan::Layout& vision, const plan::Layout& llm) {
  return ParityJob(Placement::kNonColocated, {TinyEncoder("vision", vision), TinyLlm(llm)});
}

TEST(Parity, OneRank) { ExpectParity(Homogeneous({})); }
TEST(Parity, HomogeneousTp4) { ExpectParity(Homogeneous({.tp = 4})); }
TEST(Parity, HomogeneousTp2Dp2) { ExpectParity(Homogeneous({.tp = 2, .dp = 2})); }
TEST(Parity, HomogeneousPp2Dp2) { ExpectParity(Homogeneous({.pp = 2, .dp = 2})); }
TEST(Parity, HomogeneousEncoderOnEveryRankOfCp2) { ExpectParity(Homogeneous({.cp = 2, .dp = 2})); }

TEST(Parity, ColocatedEqual) { ExpectParity(Colocated({.tp = 2, .dp = 2}, {.tp = 2, .dp = 2})); }
TEST(Parity, ColocatedEncoderTp1Dp4LlmTp4) { ExpectParity(Colocated({.dp = 4}, {.tp = 4})); }
TEST(Parity, ColocatedFanOut) { ExpectParity(Colocated({.tp = 4}, {.tp = 2, .dp = 2})); }
TEST(Parity, ColocatedLanesStraddleShards) {
  plan::Job job = Colocated({.tp = 2, .dp = 3}, {.tp = 3, .dp = 2});
  // Heads and widths that 3 divides, samples that 2 and 3 lanes share.
  job.modules[1].transformer.num_heads = 6;
  job.modules[1].transformer.num_kv_heads = 6;
  job.modules[1].transformer.ffn_hidden = 48;
  ExpectParity(job);
}
TEST(Parity, ColocatedCpOnBothSides) {
  ExpectParity(Colocated({.cp = 2, .dp = 2}, {.cp = 2, .dp = 2}));
}
TEST(Parity, ColocatedPp2StagesOfRanksInARow) {
  ExpectParity(Colocated({.dp = 4}, {.pp = 2, .dp = 2}));
}
TEST(Parity, ColocatedPp2CopiesOfRanksInARow) {
  ExpectParity(Colocated({.dp = 4}, {.pp = 2, .dp = 2, .order = AxisOrder::kTpCpPpDp}));
}
TEST(Parity, ColocatedPp2LanesStraddleShards) {
  ExpectParity(Colocated({.tp = 2, .dp = 2}, {.pp = 2, .dp = 2}));
}
TEST(Parity, ColocatedTp2Pp2) { ExpectParity(Colocated({.dp = 4}, {.tp = 2, .pp = 2})); }
TEST(Parity, ColocatedCp2) { ExpectParity(Colocated({.dp = 4}, {.tp = 2, .cp = 2})); }
TEST(Parity, ColocatedTwoEncoders) {
  ExpectParity(ParityJob(Placement::kColocated,
                         {TinyEncoder("vision", {.dp = 4}), TinySound({.tp = 2, .dp = 2}),
                          TinyLlm({.tp = 2, .dp = 2})}));
}
TEST(Parity, ColocatedEncoderDpLargerThanTheNumberOfSamples) {
  plan::Job job = Colocated({.dp = 4}, {.tp = 4});
  // One sample of two images: two of the four lanes have nothing.
  job.workload.global_batch = 1;
  ExpectParity(job);
}

TEST(Parity, ApartEqual) { ExpectParity(Apart({.tp = 2}, {.tp = 2})); }
TEST(Parity, ApartFanIn) { ExpectParity(Apart({.dp = 4}, {.dp = 2})); }
TEST(Parity, ApartFanOut) { ExpectParity(Apart({.tp = 2}, {.tp = 2, .dp = 2})); }
TEST(Parity, ApartCp2) { ExpectParity(Apart({.tp = 2}, {.tp = 2, .cp = 2})); }
TEST(Parity, ApartUnevenLanes) { ExpectParity(Apart({.dp = 3}, {.tp = 2, .dp = 2})); }
TEST(Parity, ApartTwoEncoders) {
  ExpectParity(ParityJob(Placement::kNonColocated,
                         {TinyEncoder("vision", {.dp = 2}), TinySound({}), TinyLlm({.pp = 2})}));
}
TEST(Parity, ApartEncoderTp2Pp2FanOut) {
  ExpectParity(Apart({.tp = 2, .pp = 2}, {.tp = 2, .dp = 2}));
}
TEST(Parity, ApartEncoderPp2FanInLlmPp2) { ExpectParity(Apart({.pp = 2, .dp = 2}, {.pp = 2})); }
TEST(Parity, ApartEncoderDpLargerThanTheNumberOfSamples) {
  plan::Job job = Apart({.dp = 4}, {});
  job.workload.global_batch = 2;
  ExpectParity(job);
}

TEST(Parity, Interleaved) {
  plan::Job job = Homogeneous({.pp = 2, .vpp = 2});
  job.modules[1].transformer.num_layers = 4;
  ExpectParity(job);
}
TEST(Parity, InterleavedColocatedDp2) {
  plan::Job job = Colocated({.dp = 4}, {.pp = 2, .vpp = 2, .dp = 2});
  job.modules[1].transformer.num_layers = 4;
  ExpectParity(job);
}

}  // namespace
}  // namespace isthmus::tests
