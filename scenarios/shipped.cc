#include "scenarios/shipped.h"

#include <algorithm>
#include <array>
#include <set>
#include <system_error>

namespace isthmus::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPresetFolders = {"clusters", "models", "gpus", "profiles"};
// Scenarios of the machine at hand: nobody can predict them before it is calibrated, so they are
// named by their paths alone.
constexpr const char* kHostFolder = "host";

fs::path FolderOf(FileKind kind) {
  switch (kind) {
    case FileKind::kScenario:
      return {};
    case FileKind::kCluster:
      return kPresetFolders[0];
    case FileKind::kModel:
      return kPresetFolders[1];
    case FileKind::kGpu:
      return kPresetFolders[2];
    case FileKind::kProfile:
      return kPresetFolders[3];
  }
  return {};
}

// Names are words with at most slashes between; nothing that leads out of the root.
bool IsName(std::string_view name) {
  return !name.empty() && name.front() != '/' && name.find("..") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos && name.size() < 200;
}

void AddNames(const fs::path& folder, bool with_subfolders, std::set<std::string>& names) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  if (error) return;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (error) return;
    if (entry->is_directory(error)) {
      const std::string name = entry->path().filename().string();
      const bool is_preset =
          name == kHostFolder || std::ranges::find(kPresetFolders, name) != kPresetFolders.end();
      if (!with_subfolders || is_preset) entry.disable_recursion_pending();
    } else if (entry->path().extension() == ".yaml") {
      fs::path name = entry->path().lexically_relative(folder);
      names.insert(name.replace_extension().generic_string());
    }
  }
}

// Beside the program where it was packed for another machine, else where it was built.
fs::path ShippedRoot() {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / "scenarios";
  if (!error && fs::is_directory(beside / FolderOf(FileKind::kCluster), error)) return beside;
  return ISTHMUS_SCENARIOS_ROOT;
}

}  // namespace

SearchPaths DefaultSearchPaths(const std::vector<fs::path>& extra) {
  SearchPaths search{extra};
  search.roots.push_back(ShippedRoot());
  return search;
}

std::optional<ShippedFile> FindShipped(FileKind kind, std::string_view name,
                                       const SearchPaths& search) {
  if (!IsName(name)) return std::nullopt;
  const fs::path relative = FolderOf(kind) / (std::string(name) + ".yaml");
  for (const fs::path& root : search.roots) {
    std::error_code error;
    const fs::path path = root / relative;
    if (!fs::exists(path, error)) continue;
    return ShippedFile{path, root, (root.filename() / relative).generic_string()};
  }
  return std::nullopt;
}

std::vector<std::string> ShippedNames(FileKind kind, const SearchPaths& search) {
  std::set<std::string> names;
  for (const fs::path& root : search.roots) {
    AddNames(root / FolderOf(kind), kind == FileKind::kScenario, names);
  }
  return {names.begin(), names.end()};
}

}  // namespace isthmus::scenarios
