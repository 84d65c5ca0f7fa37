#include "studies/internal/release.h"

#include <string>

#include <gtest/gtest.h>

namespace isthmus::studies::internal {
namespace {

// "name of the framework release | name that rows are grouped by".
std::string Told(const std::string& framework, const std::string& version,
                 const std::string& source, const std::string& date = "2025-01-01") {
  const CsvTable table = ParseCsv("framework,framework_version,source,source_date\n\"" + framework +
                                      "\",\"" + version + "\",\"" + source + "\"," + date + "\n",
                                  "runs.csv");
  const RowRelease release = ReleaseOf(RunsRow(table, 0));
  return std::string(release.framework->name) + " | " + release.name;
}

TEST(ReleaseTest, RecipesAndContainersNameTheirMonth) {
  const std::string nemo = "NeMo (Megatron-Core)";
  EXPECT_EQ(Told(nemo, "", "NVIDIA DGX Cloud Benchmarking recipes v24.11.1: Llama 3.1 8b 24.09"),
            "nemo-24.11 | NeMo 24.11");
  EXPECT_EQ(Told(nemo, "", "NVIDIA DGX Cloud Benchmarking recipes v25.02: Llama 3.1 8b BF16"),
            "nemo-25.02 | NeMo 25.02");
  EXPECT_EQ(Told(nemo, "", "NVIDIA DGX Cloud Benchmarking recipes v25.05.01: Llama3.1 405b FP8"),
            "nemo-25.04 | NeMo 25.05");
  EXPECT_EQ(Told(nemo, "24.07 container", "NVIDIA NeMo 24.07 performance summary"),
            "nemo-24.07 | NeMo 24.07");
  EXPECT_EQ(Told(nemo, "24.03.01 container", "NVIDIA NeMo long-sequence performance"),
            "nemo-24.03 | NeMo 24.03");
}

TEST(ReleaseTest, BridgeContainersRunVendorRecipesAndTheLibraryItselfDoesNot) {
  EXPECT_EQ(Told("Megatron-Bridge/Megatron-Core", "25.11 NeMo Container", ""),
            "megatron-bridge-25.09 | Megatron-Bridge 25.11");
  EXPECT_EQ(Told("Megatron-Bridge", "bridge commit 619cc20bd3c7", "model verification card"),
            "megatron-core | Megatron-Bridge");
}

TEST(ReleaseTest, SubmissionsAreNamedByTheirRound) {
  EXPECT_EQ(Told("NVIDIA NeMo Framework Release 23.09", "", "MLPerf Training v3.1 results: gpt3"),
            "nemo-23.09 | MLPerf v3.1");
  EXPECT_EQ(Told("NVIDIA NeMo Framework Release 25.04", "", "MLPerf Training v5.0 results: 405b"),
            "nemo-25.04 | MLPerf v5.0");
}

TEST(ReleaseTest, OlderAndOtherCode) {
  EXPECT_EQ(Told("Megatron-LM", "", "Korthikanti et al. 2022", "2022-05-10"),
            "megatron-lm-2022 | Megatron-LM 2022");
  EXPECT_EQ(Told("Megatron-LM", "Megatron-Core r0.8.0", "README", "2024-08-01"),
            "megatron-core | Megatron-Core");
  EXPECT_EQ(Told("Nanotron", "v0.5", ""), "nanotron | nanotron");
  EXPECT_EQ(Told("Aleph Alpha scaling framework (Megatron-type)", "", ""),
            "llama-eager | Aleph Alpha");
  EXPECT_EQ(Told("ours", "1.26.12", "build 2024.115"), "megatron-core | ours");
}

}  // namespace
}  // namespace isthmus::studies::internal
