#pragma once

#include <filesystem>
#include <string>

namespace isthmus::backend {

/// Where a checkpoint is written before it gets the name of its folder.
inline constexpr const char* kPartial = ".partial";

/// The place of that name with an ending: "run/" names the same folder as "run". No torch in here.
inline std::filesystem::path Beside(const std::filesystem::path& folder, const char* ending) {
  const std::filesystem::path name = folder.has_filename() ? folder : folder.parent_path();
  return name.string() + ending;
}

}  // namespace isthmus::backend
