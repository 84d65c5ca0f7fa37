#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace isthmus::tests {

/// A folder of this process alone, made when first asked for and removed at its end: tests of one
/// program may run side by side.
inline const std::filesystem::path& TestFolder() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / ("isthmus-test-" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace isthmus::tests
