#include "scenarios/reference.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace isthmus::scenarios {
namespace {

// docs/scenarios.md ends with the reference; ISTHMUS_UPDATE_GOLDEN=1 writes it anew.
TEST(ReferenceTest, TheDocumentHoldsTheReference) {
  constexpr const char* kPath = "docs/scenarios.md";
  constexpr std::string_view kTitle = "## Keys\n\n";
  std::stringstream text;
  text << std::ifstream(kPath).rdbuf();
  const std::size_t start = text.str().find(kTitle);
  ASSERT_NE(start, std::string::npos);
  const std::string before = text.str().substr(0, start + kTitle.size());
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr)
    std::ofstream(kPath) << before << DescribeKeys();
  EXPECT_EQ(text.str().substr(before.size()), DescribeKeys());
}

TEST(ReferenceTest, AKeyHasItsTypeDefaultAndMeaning) {
  EXPECT_NE(
      DescribeKeys().find("| `workload.microbatch_size` | integer, 1 to 1048576 | 1 | samples "
                          "per LLM microbatch |"),
      std::string::npos);
}

}  // namespace
}  // namespace isthmus::scenarios
