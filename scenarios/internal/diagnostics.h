#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scenarios/internal/node.h"

namespace isthmus::scenarios::internal {

// Collects mistakes, each at the place of the value it is about. Of a file with very many only the
// first kMaxEntries are kept; texts quoted from a file are cut to a readable length.
class Diagnostics {
 public:
  // `path` is the key the mistake is about; it stands before the message and is remembered, so that
  // checks of values that could not be read are left out.
  void Add(const Origin& origin, std::string_view path, std::string_view message,
           std::string hint = {});
  // At the place of `path` in `root`, or of the nearest map around it.
  void AddAt(const Node& root, std::string_view path, std::string_view message,
             std::string hint = {});
  // A mistake of a file as a whole.
  void AddFile(std::string file, std::string_view message, std::string hint = {});

  // The texts of an error of another folder, which may name several mistakes with hints, one a
  // line.
  void AddError(const Origin& origin, std::string_view path, std::string_view text);
  // Those of another collection, after our own.
  void Take(Diagnostics&& other);

  bool empty() const { return entries_.empty(); }
  // Whether a mistake is about `path` itself; about it or a key below it.
  bool HasAt(std::string_view path) const;
  bool HasUnder(std::string_view path) const;

  // Throws base::ScenarioError with all of them, by file in the order met, then line and column.
  [[noreturn]] void Throw() const;
  void ThrowIfAny() const {
    if (!empty()) Throw();
  }

 private:
  struct Entry {
    std::string path;
    std::size_t file_order = 0;
    base::Diagnostic diagnostic;
  };
  std::size_t FileOrder(const std::string& file) const;

  static constexpr std::size_t kMaxEntries = 100;
  std::vector<Entry> entries_;
};

// What was probably meant, and all that is allowed.
std::string NamesHint(std::string_view name, const std::vector<std::string>& allowed);

}  // namespace isthmus::scenarios::internal
