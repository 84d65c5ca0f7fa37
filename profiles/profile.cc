#include "profiles/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace isthmus::profiles {
namespace {

struct MarkWord {
  Mark mark;
  std::string_view word;
};

constexpr std::array<MarkWord, 5> kMarkWords = {{
    {Mark::kMeasured, "measured"},
    {Mark::kFitted, "fitted"},
    {Mark::kDataSheet, "data_sheet"},
    {Mark::kAssumed, "assumed"},
    {Mark::kChosenAfterSeeingRuns, "chosen_after_seeing_runs"},
}};

bool IsKey(std::string_view key) {
  char before = '.';
  for (const char c : key) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_word && (c != '.' || before == '.')) return false;
    before = c;
  }
  return before != '.';  // also refuses the empty key
}

std::string Place(const std::string& origin) {
  return origin.empty() ? std::string() : origin + ": ";
}

}  // namespace

std::string_view MarkName(Mark mark) {
  for (const MarkWord& entry : kMarkWords) {
    if (entry.mark == mark) return entry.word;
  }
  return "";
}

std::optional<Mark> ParseMark(std::string_view word) {
  for (const MarkWord& entry : kMarkWords) {
    if (entry.word == word) return entry.mark;
  }
  return std::nullopt;
}

const Parameter& Profile::Get(std::string_view key) const {
  const auto found = parameters_.find(key);
  if (found != parameters_.end()) return found->second;

  std::vector<std::string> keys;
  keys.reserve(parameters_.size());
  for (const auto& [name, parameter] : parameters_) keys.push_back(name);
  const std::optional<std::string> closest = base::ClosestName(key, keys);
  throw base::Error(
      fmt::format("error: profile {} has no parameter {} (looked in {}){}", name_, key,
                  files_.empty() ? "no file" : fmt::format("{}", fmt::join(files_, ", ")),
                  closest ? "\n  hint: it has " + *closest : ""));
}

double Profile::Value(std::string_view key, std::string_view unit) const {
  const Parameter& parameter = Get(key);
  if (parameter.unit != unit) {
    throw base::Error(fmt::format("{}error: parameter {} of profile {} is in {}, needed in {}",
                                  Place(parameter.origin), key, name_, parameter.unit, unit));
  }
  return parameter.value;
}

std::int64_t Profile::Count(std::string_view key) const {
  const double value = Number(key);
  if (value != std::floor(value) || std::fabs(value) > 9e15) {
    throw base::Error(fmt::format("{}error: parameter {} of profile {} is {}, needs a whole number",
                                  Place(Get(key).origin), key, name_, value));
  }
  return static_cast<std::int64_t>(value);
}

base::Bytes Profile::Size(std::string_view key) const {
  const double value = Value(key, "B");
  if (std::fabs(value) > 9e18) {
    throw base::Error(fmt::format("{}error: parameter {} of profile {} is absurdly large: {} B",
                                  Place(Get(key).origin), key, name_, value));
  }
  return base::Bytes(std::llround(value));
}

std::vector<std::string> Profile::KeysUnder(std::string_view prefix) const {
  std::vector<std::string> keys;
  for (auto it = parameters_.lower_bound(prefix);
       it != parameters_.end() && it->first.starts_with(prefix); ++it) {
    keys.push_back(it->first);
  }
  return keys;
}

Profile Profile::Strict() const {
  Profile strict = *this;
  strict.name_ += " (strict)";
  for (auto& [key, parameter] : strict.parameters_) {
    if (!parameter.strict) continue;
    parameter.value = *parameter.strict;
    parameter.mark = Mark::kAssumed;
    parameter.strict.reset();
  }
  return strict;
}

std::uint64_t Profile::Hash() const {
  base::HashBuilder hash;
  for (const auto& [key, parameter] : parameters_) {
    hash.Add(key).Add(parameter.value).Add(parameter.unit).Add(MarkName(parameter.mark));
    hash.Add(parameter.source).Add(parameter.residual.has_value());
    if (parameter.residual) {
      hash.Add(parameter.residual->median).Add(parameter.residual->p90);
      hash.Add(parameter.residual->num_rows);
    }
    hash.Add(parameter.strict.has_value());
    if (parameter.strict) hash.Add(*parameter.strict);
  }
  return hash.digest();
}

ProfileBuilder::ProfileBuilder(std::string name, std::string date, std::string file) {
  profile_.name_ = std::move(name);
  profile_.date_ = std::move(date);
  if (!file.empty()) profile_.files_.push_back(std::move(file));
}

ProfileBuilder& ProfileBuilder::Set(std::string key, Parameter parameter) {
  const std::string place = Place(parameter.origin);
  if (!IsKey(key)) {
    throw base::Error(
        fmt::format("{}error: '{}' is not a parameter's name\n  "
                    "hint: lower-case words of a-z, "
                    "0-9 and _, joined by dots",
                    place, key));
  }
  if (!std::isfinite(parameter.value) || !std::isfinite(parameter.strict.value_or(0))) {
    throw base::Error(fmt::format("{}error: parameter {} is not a finite number", place, key));
  }
  if (parameter.strict && parameter.mark != Mark::kChosenAfterSeeingRuns) {
    throw base::Error(
        fmt::format("{}error: parameter {} has a strict value, but its mark is {}\n  hint: only "
                    "values chosen_after_seeing_runs have another one beside",
                    place, key, MarkName(parameter.mark)));
  }
  if (parameter.unit.empty()) {
    throw base::Error(fmt::format(
        "{}error: parameter {} has no unit\n  hint: write 1 for a plain number", place, key));
  }
  if (profile_.parameters_.contains(key)) {
    throw base::Error(fmt::format("{}error: parameter {} is set twice", place, key));
  }
  profile_.parameters_.emplace(std::move(key), std::move(parameter));
  return *this;
}

Profile ProfileBuilder::Build() && { return std::move(profile_); }

Profile MergeProfiles(std::string name, const std::vector<Profile>& parts) {
  Profile merged;
  merged.name_ = std::move(name);
  for (const Profile& part : parts) {
    merged.date_ = std::max(merged.date_, part.date_);
    merged.files_.insert(merged.files_.end(), part.files_.begin(), part.files_.end());
    for (const auto& [key, parameter] : part.parameters_) {
      merged.parameters_.insert_or_assign(key, parameter);
    }
  }
  return merged;
}

}  // namespace isthmus::profiles
