#include "backend/torch/checkpoint/element_runs.h"

#include <gtest/gtest.h>

namespace isthmus::tests {
namespace {

using backend::ElementRun;
using backend::Parameter;
using backend::RunsOf;

using Numbers = std::vector<std::int64_t>;

std::vector<Numbers> Of(const std::vector<ElementRun>& runs) {
  std::vector<Numbers> numbers;
  for (const ElementRun& run : runs)
    numbers.push_back({run.global_begin, run.local_begin, run.size});
  return numbers;
}

TEST(ElementRuns, RowsOfSeveralTensorsInOneProduct) {
  // Rows 2 … 3 of q and row 1 of k, three columns, one row of padding behind.
  Parameter qk{.name = "qk", .shape = {4, 3}};
  qk.pieces = {{"q", {4, 3}, 0, 2, 0, 2}, {"k", {2, 3}, 0, 1, 2, 1}};
  EXPECT_EQ(Of(RunsOf(qk, 0, 12)), (std::vector<Numbers>{{6, 0, 6}, {3, 6, 3}}));
  // From the middle of q to the middle of k.
  EXPECT_EQ(Of(RunsOf(qk, 4, 8)), (std::vector<Numbers>{{10, 4, 2}, {3, 6, 2}}));
  EXPECT_TRUE(RunsOf(qk, 9, 12).empty());
}

TEST(ElementRuns, ColumnsAreARunARow) {
  // Columns 2 … 3 of a 2 × 4 tensor.
  Parameter down{.name = "down", .shape = {2, 2}};
  down.pieces = {{"down", {2, 4}, 1, 2, 0, 2}};
  EXPECT_EQ(Of(RunsOf(down, 0, 4)), (std::vector<Numbers>{{2, 0, 2}, {6, 2, 2}}));
  EXPECT_EQ(Of(RunsOf(down, 1, 3)), (std::vector<Numbers>{{3, 1, 1}, {6, 2, 1}}));
}

}  // namespace
}  // namespace isthmus::tests
