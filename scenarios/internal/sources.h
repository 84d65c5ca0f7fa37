#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/internal/diagnostics.h"
#include "scenarios/internal/node.h"
#include "scenarios/shipped.h"

namespace isthmus::scenarios::internal {

// Brings a scenario's files together into one tree: `extends`, presets by name, `--set`.
//
// Mistakes go to the diagnostics; what could be read comes back. Lifetime: the search paths and
// diagnostics must outlive it.
class Sources {
 public:
  Sources(const SearchPaths& search, Diagnostics& diagnostics)
      : search_(search), diagnostics_(diagnostics) {}

  // The scenario of a file, or of a text that messages call `label` and whose relative names start
  // at `folder`, with all it extends.
  Node ReadFile(const std::filesystem::path& path) { return ReadFile(path, path.generic_string()); }
  Node ReadFile(const std::filesystem::path& path, const std::string& label);
  Node ReadText(std::string_view text, const std::string& label,
                const std::filesystem::path& folder);

  // `key.path=value`; the value is YAML. A key through a preset's name changes the preset.
  void Set(Node& root, const std::string& assignment);

  // Puts the files that `cluster` and `modules.*.model` name in place, the scenario's own keys on
  // top.
  void ExpandPresets(Node& root);

  // The file a name or a relative path stands for. `named_by` is where the name is written.
  struct Found {
    std::filesystem::path path;
    std::string label;
  };
  bool FindFile(const std::string& name, FileKind kind, const Origin& named_by,
                const std::string& key_path, Found& found);

  // Whether a scenario's file, or one it extends, could not be read.
  bool failed() const { return failed_; }

  // One file, nothing resolved; null when it can't be read, with a diagnostic.
  Node ReadOne(const std::filesystem::path& path, const std::string& label);

 private:
  Node Parse(std::string_view content, const std::string& label);
  // Resolves `extends` of `node` (a map), which files in `chain` lead to; `key_path` is where
  // messages say the name stands.
  // False, with a diagnostic, if that can't be done.
  bool Extend(Node& node, FileKind kind, const std::string& key_path,
              std::vector<std::string> chain);
  // One step of Set: the value of `key` in `node`, which is the value at `path`; null, with a
  // diagnostic, if there can't be one.
  Node* Descend(Node& node, const std::string& path, const std::string& key, bool is_last,
                const Origin& origin);
  void ExpandPreset(Node& parent, const std::string& key, FileKind kind,
                    const std::string& key_path);

  const SearchPaths& search_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::filesystem::path> folder_of_label_;
  bool failed_ = false;
};

}  // namespace isthmus::scenarios::internal
