#include "studies/internal/release.h"

#include <cctype>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "studies/internal/training_row.h"

namespace isthmus::studies::internal {
namespace {

// A release by year and month of its container or recipe: 24.11 is 2411.
using YearMonth = int;

bool IsDigit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

// The first "YY.MM" of a text that is no part of a longer number, from 23 on.
std::optional<YearMonth> FirstYearMonth(std::string_view text) {
  constexpr std::size_t kLength = 5;
  for (std::size_t at = 0; at + kLength <= text.size(); ++at) {
    const std::string_view part = text.substr(at, kLength);
    const bool is_shaped = IsDigit(part[0]) && IsDigit(part[1]) && part[2] == '.' &&
                           IsDigit(part[3]) && IsDigit(part[4]);
    const bool is_cut = (at > 0 && (IsDigit(text[at - 1]) || text[at - 1] == '.')) ||
                        (at + kLength < text.size() && IsDigit(text[at + kLength]));
    if (!is_shaped || is_cut) continue;
    const int year = (part[0] - '0') * 10 + (part[1] - '0');
    const int month = (part[3] - '0') * 10 + (part[4] - '0');
    if (year >= 23 && month >= 1 && month <= 12) return year * 100 + month;
  }
  return std::nullopt;
}

RowRelease Named(std::string_view framework, std::string name, bool is_stated = true) {
  const plan::FrameworkRelease* release = plan::FindRelease(framework);
  ISTHMUS_CHECK(release != nullptr, "no framework release {}", framework);
  return {release, std::move(name), is_stated};
}

std::string Dated(std::string_view family, std::optional<YearMonth> version) {
  if (!version) return std::string(family);
  return fmt::format("{} {}.{:02}", family, *version / 100, *version % 100);
}

// Vendor recipes and performance pages of NeMo.
RowRelease NeMo(std::optional<YearMonth> version) {
  const YearMonth at = version.value_or(2504);
  const char* framework = at < 2403   ? "nemo-23.09"
                          : at < 2407 ? "nemo-24.03"
                          : at < 2409 ? "nemo-24.07"
                          : at < 2502 ? "nemo-24.11"
                          : at < 2504 ? "nemo-25.02"
                                      : "nemo-25.04";
  return Named(framework, Dated("NeMo", version));
}

// "MLPerf Training v3.1 results: …": submissions run a container of their own making.
RowRelease MlPerf(const std::string& source, const std::string& framework) {
  const std::size_t at = source.find(" v");
  const std::string round = at == std::string::npos ? "" : source.substr(at + 1, 4);
  const YearMonth container = FirstYearMonth(framework).value_or(2309);
  return Named(container < 2504 ? "nemo-23.09" : "nemo-25.04",
               round.empty() ? "MLPerf" : "MLPerf " + round);
}

}  // namespace

RowRelease ReleaseOf(const RunsRow& row) {
  const std::string& framework = row.text("framework");
  const std::string& version = row.text("framework_version");
  const std::string& source = row.text("source");
  const auto stated = [&](const std::string& first, const std::string& second) {
    const std::optional<YearMonth> found = FirstYearMonth(first);
    return found ? found : FirstYearMonth(second);
  };
  if (Has(framework, "zero-bubble")) return Named("megatron-lm-2022", "zero-bubble fork");
  if (Has(framework, "Aleph Alpha")) {
    const bool has_fused_norm = Has(row.text("overlap_flags"), "RMS kernel");
    return Named(has_fused_norm ? "llama-eager-fused-norm" : "llama-eager", "Aleph Alpha");
  }
  if (Has(framework, "anotron")) return Named("nanotron", "nanotron");
  if (Has(source, "MLPerf")) return MlPerf(source, framework);
  if (Has(framework, "Megatron-Bridge")) {
    const std::optional<YearMonth> container = stated(version, source);
    // Model cards and studies run the library as it comes; containers bring the vendor's recipes.
    return Named(container ? "megatron-bridge-25.09" : "megatron-core",
                 Dated("Megatron-Bridge", container));
  }
  if (Has(framework, "NeMo") || Has(framework, "NEMO")) {
    return NeMo(stated(version, source.empty() ? framework : source));
  }
  const bool is_early = !row.text("source_date").empty() && row.text("source_date") < "2023";
  if (Has(framework, "Megatron-LM") && is_early) {
    return Named("megatron-lm-2022", "Megatron-LM 2022");
  }
  const bool is_stated = Has(framework, "Megatron") || Has(framework, "Transformer Engine");
  return Named("megatron-core", is_stated ? "Megatron-Core" : framework, is_stated);
}

}  // namespace isthmus::studies::internal
