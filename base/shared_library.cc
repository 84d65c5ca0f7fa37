#include "base/shared_library.h"

#include <dlfcn.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::base {
namespace {

std::filesystem::path FolderOfThisProgram() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace

void* LoadFunction(const std::string& library, const std::string& function, const std::string& hint,
                   bool is_global) {
  std::filesystem::path path = FolderOfThisProgram() / library;
  if (!std::filesystem::exists(path)) path = library;
  void* handle = dlopen(path.c_str(), RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle == nullptr) {
    throw IoError(fmt::format("error: {} is needed and was not loaded: {}\n  hint: {}",
                              path.string(), dlerror(), hint));
  }
  void* symbol = dlsym(handle, function.c_str());
  if (symbol == nullptr) {
    throw IoError(
        fmt::format("error: {} is of another version: it has no {}", path.string(), function));
  }
  return symbol;
}

}  // namespace isthmus::base
