#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "backend/torch/checkpoint/stored_part.h"

/// A rank's file of a checkpoint.
namespace isthmus::backend::internal {

/// Elements of a global tensor, one after the other.
struct GlobalRun {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// Values of one kind and name in a file.
struct Entry {
  StateKind kind = StateKind::kWeight;
  at::ScalarType type = at::kFloat;
  std::string name;
  std::vector<std::int64_t> shape;  // global
  std::vector<GlobalRun> runs;      // in the order of the values
  std::int64_t offset = 0;          // bytes behind the index
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;
};

/// What the manifest says of a file.
struct FileFacts {
  std::int64_t bytes = 0;
  std::uint64_t index_checksum = 0;
};

/// Writes `parts`; throws base::IoError.
FileFacts WriteStateFile(const std::filesystem::path& path, const std::vector<StoredPart>& parts);

/// An open file whose index has been read and checked against the manifest. Throws base::Error with
/// the path.
class StateFile {
 public:
  StateFile(std::filesystem::path path, const FileFacts& facts);
  const std::vector<Entry>& entries() const { return entries_; }
  /// Reads and checks the values of an entry: flat.
  at::Tensor Read(const Entry& entry) const;

 private:
  std::filesystem::path path_;
  std::int64_t payload_begin_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace isthmus::backend::internal
