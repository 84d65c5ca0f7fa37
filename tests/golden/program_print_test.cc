// The printed forms of four small programs against tests/golden/plan/NAME.expected. With
// ISTHMUS_UPDATE_GOLDEN=1 the expected texts are written.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plan/program/print.h"
#include "tests/support/program_jobs.h"

namespace isthmus::plan {
namespace {

using tests::EncoderOf;
using tests::JobOf;
using tests::LlmOf;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The whole program, then its boundaries, then some of its ranks.
void Check(const std::string& name, const Job& job, const std::vector<int>& ranks) {
  const Program program = Build(job);
  EXPECT_EQ(tests::ProblemsOf(program), "");
  std::string text = PrintProgram(program) + "\n" + PrintBoundaries(program);
  for (const int rank : ranks) text += "\n" + PrintRank(program, base::Rank{rank});
  const std::filesystem::path path = "tests/golden/plan/" + name + ".expected";
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, ReadAll(path));
}

TEST(ProgramPrint, HomogeneousLongPipeline) {
  Job job =
      JobOf(Placement::kHomogeneous, {EncoderOf("vision"), LlmOf({.tp = 2, .pp = 2, .dp = 2})}, 32);
  job.optimizer.bucket_parameters = 15'000'000;
  Check("homogeneous", job, {0, 5});
}

TEST(ProgramPrint, InterleavedWithADeferredHead) {
  Job job = JobOf(Placement::kHomogeneous, {LlmOf({.pp = 2, .vpp = 2})}, 6);
  job.schedule.defer_embedding_wgrad = 2;
  Check("interleaved", job, {0, 1});
}

TEST(ProgramPrint, ColocatedFanIn) {
  Job job = JobOf(Placement::kColocated,
                  {EncoderOf("vision", {.dp = 8}), LlmOf({.tp = 2, .pp = 2, .dp = 2})});
  job.modules[0].settings.offload_parameters = true;
  job.modules[1].settings.recompute = Recompute::kFull;
  job.modules[1].settings.recompute_layers = 1;
  Check("colocated", job, {0, 7});
}

TEST(ProgramPrint, NonColocatedJoin) {
  Check("non_colocated", tests::JoinOfUnequalDepth(), {2, 3});
}

}  // namespace
}  // namespace isthmus::plan
