#include "backend/torch/checkpoint/internal/manifest.h"

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/hash.h"

namespace isthmus::backend::internal {
namespace {

constexpr const char* kFirstLine = "isthmus checkpoint 1";

std::string LinesOf(const Manifest& manifest) {
  const CheckpointFacts& facts = manifest.facts;
  std::string text = fmt::format("{}\n", kFirstLine);
  text += fmt::format("step {}\nupdates {}\nseed {}\n", facts.step, facts.updates, facts.seed);
  // %a keeps every bit of the scale.
  text += fmt::format("loss_scale {:a}\nsteps_without_overflow {}\n", facts.loss_scale,
                      facts.steps_without_overflow);
  text += fmt::format("model {}\nscenario {}\n", base::HashText(facts.model), facts.scenario_hash);
  for (std::size_t rank = 0; rank < manifest.files.size(); ++rank) {
    const FileFacts& file = manifest.files[rank];
    text += fmt::format("file {} {} {}\n", rank, file.bytes, base::HashText(file.index_checksum));
  }
  return text;
}

std::uint64_t ParseHash(const std::string& text) { return std::stoull(text, nullptr, 16); }

void ParseLine(const std::string& line, Manifest& manifest) {
  std::istringstream words(line);
  std::string key;
  std::string value;
  words >> key >> value;
  CheckpointFacts& facts = manifest.facts;
  if (key == "step") facts.step = std::stoll(value);
  if (key == "updates") facts.updates = std::stoll(value);
  if (key == "seed") facts.seed = std::stoull(value);
  if (key == "loss_scale") facts.loss_scale = std::stod(value);
  if (key == "steps_without_overflow") facts.steps_without_overflow = std::stoll(value);
  if (key == "model") facts.model = ParseHash(value);
  if (key == "scenario") facts.scenario_hash = value;
  if (key != "file") return;
  FileFacts& file = manifest.files.emplace_back();
  std::string checksum;
  words >> file.bytes >> checksum;
  file.index_checksum = ParseHash(checksum);
}

std::string ChecksumLine(const std::string& text) {
  return fmt::format("checksum {}\n", base::HashText(base::HashBuilder().Add(text).digest()));
}

}  // namespace

std::filesystem::path StateFileOf(const std::filesystem::path& folder, std::size_t rank) {
  return folder / fmt::format("rank-{:05}.state", rank);
}

void WriteManifest(const std::filesystem::path& folder, const Manifest& manifest) {
  const std::string text = LinesOf(manifest);
  base::WriteFile(folder / "manifest", text + ChecksumLine(text));
}

bool HoldsOnlyParts(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_state = name.starts_with("rank-") && name.ends_with(".state");
    if (name != "manifest" && !is_state) return false;
  }
  return true;
}

bool IsCheckpoint(const std::filesystem::path& folder) {
  if (!HoldsOnlyParts(folder)) return false;
  std::ifstream file(folder / "manifest");
  std::string line;
  return std::getline(file, line) && line == kFirstLine;
}

Manifest ReadManifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "manifest";
  const std::string whole = base::ReadFile(path);
  const std::size_t end = whole.rfind("checksum ");
  const std::string text = whole.substr(0, end == std::string::npos ? 0 : end);
  if (!whole.starts_with(kFirstLine)) {
    throw base::Error(fmt::format("{} is not the manifest of a checkpoint", path.string()));
  }
  if (end == std::string::npos || whole.substr(end) != ChecksumLine(text)) {
    throw base::Error(fmt::format("{} is corrupt: it is not as it was written", path.string()));
  }
  Manifest manifest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ParseLine(line, manifest);
  return manifest;
}

}  // namespace isthmus::backend::internal
