#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/torch/checkpoint/stored_part.h"
#include "backend/torch/comm/communicator.h"
#include "plan/program/program.h"

/// Checkpoints that any layout of the same model can resume from.
///
/// A checkpoint is a folder: one file a rank, `rank-00003.state`, with the parts that it owns by
/// name and global range (each with a checksum), and `manifest`, which says what the whole is and
/// names size and checksum of each file's index. It is written into `<folder>.partial` and renamed
/// when every rank is done, so that under its name it is whole; all ranks have to see one file
/// system. Text in front, so that `head` shows what is in a file.
namespace isthmus::backend {

/// What a run needs to go on, beside tensors.
struct CheckpointFacts {
  std::int64_t step = 0;     // steps done: the next one takes the samples of this number
  std::int64_t updates = 0;  // steps that were not skipped: position of Adam and learning rate
  std::uint64_t seed = 0;
  double loss_scale = 1.0;
  std::int64_t steps_without_overflow = 0;
  std::uint64_t model = 0;      // HashOfModel()
  std::string scenario_hash{};  // of the run that wrote it, for people
  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// Fingerprint of the modules' dimensions and of the edges: equal in all layouts and precisions.
std::uint64_t HashOfModel(const plan::Program& program);

/// Throws on every rank, before anything is trained, where WriteCheckpoint() could not work:
/// base::Error where `folder` or `<folder>.partial` holds something else than a checkpoint, which
/// writing one would replace, base::IoError where rank 0 can't make such a folder. Changes nothing.
/// All ranks call it.
void CheckPlace(const std::filesystem::path& folder, Communicator& control);

/// Writes the checkpoint; an older one of that name is replaced when the new one is whole. All
/// ranks call it. Parts of several ranks may overlap where they hold equal values. Throws what
/// CheckPlace() does, and base::IoError on every rank, naming the rank that failed and why,
/// and leaves the older one.
void WriteCheckpoint(const std::filesystem::path& folder, const CheckpointFacts& facts,
                     const std::vector<StoredPart>& owned, Communicator& control);

/// Fills the values of `wanted` and returns the facts. All ranks call it. Reads only what overlaps.
/// Throws base::Error on every rank, naming rank, file and reason: not a checkpoint, another model
/// or seed than `expected`, a file that is missing, truncated or corrupt, elements that nobody
/// wrote. Tensors are undefined then.
CheckpointFacts ReadCheckpoint(const std::filesystem::path& folder, const CheckpointFacts& expected,
                               const std::vector<StoredPart>& wanted, Communicator& control);

}  // namespace isthmus::backend
