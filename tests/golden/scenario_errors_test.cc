// Every tests/golden/errors/NAME.yaml is a bad scenario, NAME.expected the text a user reads. Lines
// "# --set key=value" of the file are overrides. ISTHMUS_UPDATE_GOLDEN=1 writes the expected texts.

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

namespace isthmus::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "tests/golden/errors";

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> OverridesIn(const fs::path& path) {
  std::vector<std::string> overrides;
  constexpr std::string_view kMark = "# --set ";
  std::istringstream lines(ReadAll(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMark)) overrides.push_back(line.substr(kMark.size()));
  }
  return overrides;
}

std::string MessageOf(const fs::path& path) {
  try {
    LoadScenario(path, OverridesIn(path));
  } catch (const base::ScenarioError& error) {
    return std::string(error.what()) + "\n";
  }
  return "no error\n";
}

class ScenarioErrors : public ::testing::Test {
 public:
  explicit ScenarioErrors(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::string message = MessageOf(path_);
    const fs::path expected = fs::path(path_).replace_extension(".expected");
    if (std::getenv("ISTHMUS_UPDATE_GOLDEN") != nullptr) std::ofstream(expected) << message;
    EXPECT_EQ(message, ReadAll(expected));
  }

 private:
  fs::path path_;
};

int RegisterAll() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    ::testing::RegisterTest("ScenarioErrors", path.stem().c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [path] { return new ScenarioErrors(path); });
  }
  return static_cast<int>(paths.size());
}

}  // namespace
}  // namespace isthmus::scenarios

int main(int argc, char** argv) {
  // Tests are registered from files, so the folder must be the same when they are listed and run.
  std::filesystem::current_path(ISTHMUS_SOURCE_DIR);
  ::testing::InitGoogleTest(&argc, argv);
  return isthmus::scenarios::RegisterAll() >= 20 ? RUN_ALL_TESTS() : 1;
}
