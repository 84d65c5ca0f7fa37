#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The files that come with Isthmus and the user's own beside them.
namespace isthmus::scenarios {

/// What a name may stand for.
enum class FileKind {
  kScenario,  ///< <root>/NAME.yaml
  kCluster,   ///< <root>/clusters/NAME.yaml
  kModel,     ///< <root>/models/NAME.yaml
  kGpu,       ///< <root>/gpus/NAME.yaml: a whole profile
  kProfile,   ///< <root>/profiles/NAME.yaml: a part of a profile
};

/// Folders that hold clusters/, gpus/, models/ and profiles/, in the order they are searched.
struct SearchPaths {
  std::vector<std::filesystem::path> roots;
};

/// `extra` first, then the folder `scenarios` beside the program, where there is one (a package for
/// another machine), else the one of the tree that was built.
SearchPaths DefaultSearchPaths(const std::vector<std::filesystem::path>& extra = {});

/// A file found by name: where it lies, and what messages call it ("scenarios/models/vit-1b.yaml",
/// whatever folder the tree lies in, so that equal inputs give equal texts everywhere).
struct ShippedFile {
  std::filesystem::path path;
  std::filesystem::path root;
  std::string label;
};

/// Nothing if no root has it.
std::optional<ShippedFile> FindShipped(FileKind kind, std::string_view name,
                                       const SearchPaths& search);

/// All names of a kind, sorted, each once. Scenarios of subfolders with the folder:
/// "examples/gpt-8gpu".
std::vector<std::string> ShippedNames(FileKind kind, const SearchPaths& search);

}  // namespace isthmus::scenarios
