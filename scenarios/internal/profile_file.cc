#include "scenarios/internal/profile_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "profiles/parameter_range.h"
#include "scenarios/internal/diagnostics.h"

namespace isthmus::scenarios::internal {
namespace {

using profiles::Mark;
using profiles::Parameter;
using profiles::Profile;

// A file and what it includes. Not done with archives: a profile has thousands of values of one
// form, and reading it is most of the time that loading a scenario takes.
class ProfileReader {
 public:
  ProfileReader(Sources& sources, const SearchPaths& search, Diagnostics& diagnostics)
      : sources_(sources), search_(search), diagnostics_(diagnostics) {}

  // Appends the profile of a file after those it includes.
  void Read(const Sources::Found& file, std::vector<Profile>& parts) {
    if (std::ranges::find(open_, file.label) != open_.end()) {
      diagnostics_.AddFile(file.label, "profiles include each other in a loop");
      return;
    }
    open_.push_back(file.label);
    const Node root = sources_.ReadOne(file.path, file.label);
    if (!root.is_null()) ReadRoot(root, file.label, parts);
    open_.pop_back();
  }

 private:
  void ReadRoot(const Node& root, const std::string& label, std::vector<Profile>& parts) {
    CheckKeys(root, "", {"profile", "parameters"});
    const Node* header = root.Find("profile");
    const Node* parameters = root.Find("parameters");
    if (header == nullptr || !header->is_map()) {
      diagnostics_.Add(root.origin, "profile", "is missing: a map with the profile's name");
      return;
    }
    CheckKeys(*header, "profile",
              {"name", "date", "command", "input", "includes", "source", "machine", "versions",
               "commit"});
    if (const Node* includes = header->Find("includes")) Include(*includes, parts);
    profiles::ProfileBuilder builder(TextOf(*header, "name", "profile"),
                                     OptionalText(*header, "date"), label);
    if (parameters != nullptr && parameters->is_map()) {
      for (const Node::Entry& entry : parameters->entries) {
        const auto parameter = ReadParameter(entry.value, entry.key);
        if (!parameter) continue;
        try {
          builder.Set(entry.key, *parameter);
        } catch (const base::Error& error) {
          diagnostics_.AddError(entry.origin, {}, error.what());
        }
      }
    } else if (parameters != nullptr && !parameters->is_null()) {
      diagnostics_.Add(parameters->origin, "parameters",
                       fmt::format("found {}, expected a map", KindText(parameters->kind)));
    }
    parts.push_back(std::move(builder).Build());
  }

  void Include(const Node& includes, std::vector<Profile>& parts) {
    if (!includes.is_list()) {
      diagnostics_.Add(includes.origin, "profile.includes", "expected a list of files");
      return;
    }
    for (const Node& item : includes.items) {
      const auto file = item.is_scalar() ? FindIncluded(item.text) : std::nullopt;
      if (file) {
        Read(*file, parts);
      } else {
        diagnostics_.Add(item.origin, "profile.includes",
                         fmt::format("there is no file {}", item.text),
                         "paths start in the folder that holds gpus/ and profiles/");
      }
    }
  }

  std::optional<Sources::Found> FindIncluded(std::string_view path) const {
    constexpr std::string_view kSuffix = ".yaml";
    if (!path.ends_with(kSuffix)) return std::nullopt;
    const auto found =
        FindShipped(FileKind::kScenario, path.substr(0, path.size() - kSuffix.size()), search_);
    if (!found) return std::nullopt;
    return Sources::Found{found->path, found->label};
  }

  // Nothing, with a diagnostic, if it is not complete.
  std::optional<Parameter> ReadParameter(const Node& node, const std::string& key) {
    Parameter parameter;
    parameter.origin = node.origin.Text();
    if (!node.is_map()) {
      diagnostics_.Add(node.origin, key,
                       fmt::format("found {}, expected a map of value, unit, mark "
                                   "and source",
                                   KindText(node.kind)));
      return std::nullopt;
    }
    CheckKeys(node, key, {"value", "unit", "mark", "source", "residual", "strict"});
    parameter.value = NumberOf(node, "value", key);
    parameter.unit = TextOf(node, "unit", key);
    parameter.source = TextOf(node, "source", key);
    const std::string mark = TextOf(node, "mark", key);
    const auto parsed = profiles::ParseMark(mark);
    if (!parsed && !mark.empty()) {
      diagnostics_.Add(node.Find("mark")->origin, JoinPath(key, "mark"),
                       fmt::format("unknown value \"{}\"", mark),
                       NamesHint(mark, {"measured", "fitted", "data_sheet", "assumed",
                                        "chosen_after_seeing_runs"}));
    }
    parameter.mark = parsed.value_or(Mark::kAssumed);
    if (node.Find("strict") != nullptr) parameter.strict = NumberOf(node, "strict", key);
    CheckRange(node, key, parameter);
    const Node* residual = node.Find("residual");
    if (residual != nullptr && residual->is_map()) {
      const std::string path = JoinPath(key, "residual");
      CheckKeys(*residual, path, {"median", "p90", "rows"});
      parameter.residual = profiles::Residual{
          NumberOf(*residual, "median", path), NumberOf(*residual, "p90", path),
          static_cast<std::int64_t>(std::clamp(NumberOf(*residual, "rows", path), 0.0, 1e15))};
    }
    const bool is_complete = !parameter.unit.empty() && !parameter.source.empty() && parsed;
    return is_complete ? std::optional(parameter) : std::nullopt;
  }

  // The path is the parameter's key behind `parameters.`.
  void CheckRange(const Node& map, const std::string& path, const Parameter& parameter) {
    const std::string key = path.substr(path.find('.') + 1);
    const profiles::ParameterRange range = profiles::RangeOf(key, parameter.unit);
    if (range.Holds(parameter.value) && range.Holds(parameter.strict.value_or(parameter.value)))
      return;
    const double wrong = range.Holds(parameter.value) ? *parameter.strict : parameter.value;
    diagnostics_.Add(map.origin, path, fmt::format("{:g} is out of range", wrong),
                     "allowed: " + profiles::ToText(range));
  }

  void CheckKeys(const Node& map, const std::string& path,
                 const std::vector<std::string>& allowed) {
    for (const Node::Entry& entry : map.entries) {
      if (std::ranges::find(allowed, entry.key) != allowed.end()) continue;
      diagnostics_.Add(entry.origin, JoinPath(path, entry.key), "unknown key",
                       NamesHint(entry.key, allowed));
    }
  }

  static std::string OptionalText(const Node& map, std::string_view key) {
    const Node* value = map.Find(key);
    return value != nullptr ? value->text : std::string();
  }

  std::string TextOf(const Node& map, std::string_view key, const std::string& path) {
    const Node* value = map.Find(key);
    if (value == nullptr || !value->is_scalar() || value->text.empty()) {
      diagnostics_.Add(map.origin, JoinPath(path, key), "is missing");
      return {};
    }
    return value->text;
  }

  double NumberOf(const Node& map, std::string_view key, const std::string& path) {
    const std::string text = TextOf(map, key, path);
    double number = 0.0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (!text.empty() && (error != std::errc() || rest != end || !std::isfinite(number))) {
      diagnostics_.Add(map.Find(key)->origin, JoinPath(path, key),
                       fmt::format("\"{}\" is not a number", text));
      return 0.0;
    }
    return number;
  }

  Sources& sources_;
  const SearchPaths& search_;
  Diagnostics& diagnostics_;
  std::vector<std::string> open_;  // labels of the files that are being read
};

}  // namespace

Profile ReadProfile(Sources& sources, const SearchPaths& search, Diagnostics& diagnostics,
                    const std::string& name, const Origin& named_by, const std::string& key_path) {
  Sources::Found file;
  const bool is_part = !FindShipped(FileKind::kGpu, name, search) &&
                       FindShipped(FileKind::kProfile, name, search).has_value();
  const FileKind kind = is_part ? FileKind::kProfile : FileKind::kGpu;
  if (!sources.FindFile(name, kind, named_by, key_path, file)) return {};
  std::vector<Profile> parts;
  ProfileReader(sources, search, diagnostics).Read(file, parts);
  if (parts.empty()) return {};
  const std::string merged_name = parts.back().name();
  return profiles::MergeProfiles(merged_name, parts);
}

}  // namespace isthmus::scenarios::internal
