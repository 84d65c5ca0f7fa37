#pragma once

#include <filesystem>
#include <vector>

#include "backend/torch/checkpoint/checkpoint.h"
#include "backend/torch/checkpoint/internal/state_file.h"

namespace isthmus::backend::internal {

/// What the manifest of a checkpoint says: facts, and the files by rank that wrote them.
struct Manifest {
  CheckpointFacts facts;
  std::vector<FileFacts> files;
};

/// The name of a rank's file in the folder.
std::filesystem::path StateFileOf(const std::filesystem::path& folder, std::size_t rank);

/// Throws base::IoError.
void WriteManifest(const std::filesystem::path& folder, const Manifest& manifest);
/// Whether the folder is empty or has nothing but what checkpoints have, by the names.
bool HoldsOnlyParts(const std::filesystem::path& folder);
/// The same, and it has a manifest, corrupt or not.
bool IsCheckpoint(const std::filesystem::path& folder);
/// Throws base::Error with the path.
Manifest ReadManifest(const std::filesystem::path& folder);

}  // namespace isthmus::backend::internal
