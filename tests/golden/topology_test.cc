// Every tests/golden/topology/NAME.yaml is a cluster, NAME.txt what `isthmus topology` says of it,
// or the text a user reads if it is bad, and NAME.svg its picture. ISTHMUS_UPDATE_GOLDEN=1 writes
// them.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "scenarios/scenario.h"
#include "topology/describe.h"
#include "topology/picture.h"

namespace isthmus::topology {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Compare(const std::string& text, const fs::path& expected) {
  if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << text;
  EXPECT_EQ(text, ReadAll(expected)) << expected;
}

TEST(TopologyGolden, DescriptionsPicturesAndMistakes) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator("tests/golden/topology")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty());
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path);
    try {
      const Cluster cluster(scenarios::LoadCluster(path.string()));
      Compare(DescribeCluster(cluster), fs::path(path).replace_extension(".txt"));
      Compare(DrawCluster(cluster), fs::path(path).replace_extension(".svg"));
    } catch (const base::ScenarioError& error) {
      Compare(std::string(error.what()) + "\n", fs::path(path).replace_extension(".txt"));
    }
  }
}

}  // namespace
}  // namespace isthmus::topology
