// Throws mutated scenario files at the loader. It may answer with a scenario or with base::Error;
// anything else (another exception, a crash, a hang, what a sanitizer finds) is a bug. The seed is
// printed with a failure; ISTHMUS_FUZZ_SEED and ISTHMUS_FUZZ_CASES change where and how long.

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "scenarios/scenario.h"

namespace isthmus::scenarios {
namespace {

namespace fs = std::filesystem;

// What mistakes and attacks are made of.
constexpr auto kTokens = std::to_array<std::string_view>({"-1",
                                                          "0",
                                                          "1e308",
                                                          "99999999999999999999",
                                                          "9223372036854775807",
                                                          "0.0000001",
                                                          "nan",
                                                          "inf",
                                                          "~",
                                                          "true",
                                                          "[]",
                                                          "{}",
                                                          "[[[[[[[[",
                                                          "{{{{",
                                                          "&a ",
                                                          "*a",
                                                          "!!int ",
                                                          "!x ",
                                                          "? ",
                                                          ": ",
                                                          "- ",
                                                          "<<: ",
                                                          "---\n",
                                                          "...\n",
                                                          "%YAML 1.2\n",
                                                          "\"",
                                                          "'",
                                                          "|\n",
                                                          ">\n",
                                                          "\t",
                                                          "#",
                                                          "\0",
                                                          "\xff",
                                                          "inherit",
                                                          "extends: quickstart\n",
                                                          "extends: ./x.yaml\n",
                                                          "tp: 8",
                                                          "dp: 1048576",
                                                          "400 Gbit/s",
                                                          "80 GiB",
                                                          "modules:\n",
                                                          "layout: {",
                                                          "\r\n",
                                                          "\xef\xbb\xbf",
                                                          "\xc2\xa0",
                                                          "llm",
                                                          "decoder"});

std::string ReadAll(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::int64_t NumberFrom(const char* variable, std::int64_t fallback) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : fallback;
}

// A place in a text, and one after it not far away.
struct Cut {
  std::size_t begin = 0;
  std::size_t length = 0;
};
Cut RandomCut(const std::string& text, base::RandomStream& random) {
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t begin = random.UniformInt(0, size);
  const std::int64_t length = random.UniformInt(0, std::min<std::int64_t>(size - begin, 40));
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(length)};
}

void Mutate(std::string& text, base::RandomStream& random) {
  const Cut cut = RandomCut(text, random);
  const Cut other = RandomCut(text, random);
  switch (random.UniformInt(0, 6)) {
    case 0:
      text.erase(cut.begin, cut.length);
      break;
    case 1:
      text.insert(cut.begin, random.Pick(std::span<const std::string_view>(kTokens)));
      break;
    case 2:
      text.replace(cut.begin, cut.length, random.Pick(std::span<const std::string_view>(kTokens)));
      break;
    case 3:
      text.insert(cut.begin, text.substr(other.begin, other.length));
      break;
    case 4:
      if (cut.begin < text.size()) text[cut.begin] = static_cast<char>(random.UniformInt(0, 255));
      break;
    case 5:
      text.resize(cut.begin);
      break;
    default: {
      // A number becomes another one.
      const std::size_t digit = text.find_first_of("0123456789", cut.begin);
      if (digit != std::string::npos) {
        text.insert(digit, std::to_string(random.UniformInt(0, 99)));
      }
    }
  }
}

class ScenarioLoaderFuzz : public ::testing::Test {
 protected:
  static constexpr std::int64_t kDefaultCases = 1'500;

  // A folder with a short profile before the shipped one: the profile is not what is mutated here.
  // Tests run side by side, so each has a folder of its own.
  ScenarioLoaderFuzz()
      : root_(fs::path(::testing::TempDir()) /
              ("isthmus-fuzz-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_ / "gpus");
    std::ofstream(root_ / "gpus" / "h100-sxm.yaml")
        << "profile: {name: h100-sxm}\n"
           "parameters:\n"
           "  device.num_sms: {value: 132, unit: \"1\", mark: data_sheet, source: none}\n";
    search_ = DefaultSearchPaths({root_});
    for (const std::string& name : ShippedNames(FileKind::kScenario, DefaultSearchPaths())) {
      if (name.starts_with("paper/")) continue;  // made by one pattern, and many
      const fs::path path = FindShipped(FileKind::kScenario, name, search_)->path;
      seeds_.push_back(ReadAll(path));
      seeds_.push_back(ShowScenario(LoadScenario(path, {}, search_)));
    }
  }
  ~ScenarioLoaderFuzz() override { fs::remove_all(root_); }

  fs::path root_;
  SearchPaths search_;
  std::vector<std::string> seeds_;
};

TEST_F(ScenarioLoaderFuzz, MutatedScenariosGiveAScenarioOrAnError) {
  const auto seed = static_cast<std::uint64_t>(NumberFrom("ISTHMUS_FUZZ_SEED", 1));
  const std::int64_t cases = NumberFrom("ISTHMUS_FUZZ_CASES", kDefaultCases);
  std::int64_t num_loaded = 0;
  for (std::int64_t number = 0; number < cases; ++number) {
    base::RandomStream random(seed, "scenario loader " + std::to_string(number));
    std::string text = random.Pick(std::span<const std::string>(seeds_));
    for (std::int64_t left = random.UniformInt(1, 6); left > 0; --left) Mutate(text, random);
    std::vector<std::string> overrides;
    if (random.Chance(0.2)) {
      std::string assignment = "modules.vision.layout.tp=2";
      Mutate(assignment, random);
      overrides.push_back(std::move(assignment));
    }
    try {
      ParseScenario(text, "fuzz.yaml", overrides, search_, "scenarios/examples");
      ++num_loaded;
    } catch (const base::Error&) {
      // A mistake was found and told.
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << " case " << number << ": " << error.what() << "\n" << text;
    }
  }
  // Some mutations do no harm; if none loads, or all do, the test has lost its teeth.
  EXPECT_GT(num_loaded, cases / 100);
  EXPECT_LT(num_loaded, cases * 3 / 4);
}

TEST_F(ScenarioLoaderFuzz, MutatedProfilesGiveAProfileOrAnError) {
  const std::string original =
      ReadAll(FindShipped(FileKind::kGpu, "a100-sxm", DefaultSearchPaths())->path);
  const auto seed = static_cast<std::uint64_t>(NumberFrom("ISTHMUS_FUZZ_SEED", 1));
  const std::int64_t cases = NumberFrom("ISTHMUS_FUZZ_CASES", kDefaultCases) / 5;
  for (std::int64_t number = 0; number < cases; ++number) {
    base::RandomStream random(seed, "profile " + std::to_string(number));
    std::string text = original;
    for (std::int64_t left = random.UniformInt(1, 6); left > 0; --left) Mutate(text, random);
    std::ofstream(root_ / "gpus" / "mutant.yaml", std::ios::trunc) << text;
    try {
      LoadProfile("mutant", search_);
    } catch (const base::Error&) {
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << " case " << number << ": " << error.what() << "\n" << text;
    }
  }
}

// Inputs whose cost could grow faster than their size.
TEST_F(ScenarioLoaderFuzz, LargeInputsEndSoon) {
  std::string keys = "modules:\n";
  for (int key = 0; key < 12'000; ++key) keys += "  m" + std::to_string(key) + ": {}\n";
  std::string edges = "extends: quickstart\nedges:\n";
  for (int edge = 0; edge < 12'000; ++edge) edges += "- {from: vision, to: language}\n";
  std::string twice = "extends: quickstart\n";
  for (int key = 0; key < 20'000; ++key) twice += "k" + std::to_string(key % 10'000) + ": 1\n";
  const std::string long_key = std::string(900'000, 'k') + ": 1\n";
  const std::string quoted = "\"" + std::string(900'000, 'k') + "\": 1\n";
  const std::string deep(900'000, '[');
  const std::string dashes(100'000, '-');
  std::string blanks;
  for (int line = 0; line < 1'000; ++line)
    blanks += std::string(static_cast<std::size_t>(line), ' ') + "a:\n";
  for (const std::string& text : {keys, edges, twice, long_key, quoted, deep, dashes, blanks}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(ParseScenario(text, "large.yaml", {}, search_), base::Error);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    EXPECT_LT(time.count(), 20.0) << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace isthmus::scenarios
