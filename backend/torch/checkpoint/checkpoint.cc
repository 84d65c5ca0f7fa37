#include "backend/torch/checkpoint/checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "backend/torch/checkpoint/beside.h"
#include "backend/torch/checkpoint/element_runs.h"
#include "backend/torch/checkpoint/internal/manifest.h"
#include "backend/torch/checkpoint/internal/state_file.h"
#include "backend/torch/comm/run_on_all.h"
#include "base/error.h"
#include "base/hash.h"

namespace isthmus::backend {
namespace {

namespace fs = std::filesystem;
using internal::Entry;
using internal::FileFacts;
using internal::Manifest;
using internal::StateFile;

/// Throws unless the folder may be replaced (it is not there, holds a checkpoint, or nothing) and
/// what lies in the place of its unfinished one is such.
void CheckReplaceable(const fs::path& folder) try {
  const fs::path partial = Beside(folder, kPartial);
  if (fs::exists(partial) && !(fs::is_directory(partial) && internal::HoldsOnlyParts(partial))) {
    throw base::Error(fmt::format("{} is in the way: it is no checkpoint that was left unfinished",
                                  partial.string()));
  }
  if (!fs::exists(folder)) return;
  if (fs::is_directory(folder) && (fs::is_empty(folder) || internal::IsCheckpoint(folder))) return;
  throw base::Error(
      fmt::format("{} is not a checkpoint, and would be replaced by one", folder.string()));
} catch (const fs::filesystem_error& error) {
  throw base::IoError("look at", folder.string(), error.code().value());
}

/// Makes the folder and takes away again what was made of it.
void TryToMake(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path())
    missing.push_back(at);
  if (missing.empty()) return;
  fs::create_directories(folder, error);
  const int reason = error.value();
  // Only what is empty goes: others may have begun to use it.
  for (const fs::path& made : missing) fs::remove(made, error);
  if (reason != 0) throw base::IoError("make", folder.string(), reason);
}

void MakeEmpty(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) fs::create_directories(folder, error);
  if (error) throw base::IoError("make", folder.string(), error.value());
}

void Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw base::IoError("rename", from.string(), error.value());
}

/// Puts the whole new folder in the place of an older one: at once, so that there is one whoever is
/// killed meanwhile, or where the file system can't exchange names, one after the other.
void Replace(const fs::path& partial, const fs::path& folder) {
  if (!fs::exists(folder)) return Rename(partial, folder);
  std::error_code ignored;
  if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(partial, ignored);
    return;
  }
  const fs::path older = Beside(folder, ".older");
  fs::remove_all(older, ignored);
  Rename(folder, older);
  try {
    Rename(partial, folder);
  } catch (const base::IoError&) {
    fs::rename(older, folder, ignored);
    throw;
  }
  fs::remove_all(older, ignored);
}

/// Of all ranks, by rank.
std::vector<FileFacts> Gather(const FileFacts& own, Communicator& control) {
  const at::Tensor all = at::zeros({control.size(), 2}, at::kLong);
  const at::Tensor row = all.select(0, control.index());
  row[0] = own.bytes;
  row[1] = std::bit_cast<std::int64_t>(own.index_checksum);
  control.AllReduce(all).Wait();
  std::vector<FileFacts> files;
  for (int rank = 0; rank < control.size(); ++rank) {
    files.push_back({all[rank][0].item<std::int64_t>(),
                     std::bit_cast<std::uint64_t>(all[rank][1].item<std::int64_t>())});
  }
  return files;
}

/// Elements of a wanted state that have to come from somewhere.
struct Target {
  std::vector<ElementRun> runs;  // by global_begin
  at::Tensor values;             // flat, local_begin - part.begin is the place
  std::int64_t part_begin = 0;
  std::vector<bool> filled;  // by place
};

using Targets = std::map<std::pair<std::string, StateKind>, std::vector<Target>>;

Targets TargetsOf(const std::vector<StoredPart>& wanted) {
  Targets targets;
  for (const StoredPart& part : wanted) {
    std::map<std::string, std::vector<ElementRun>> by_piece;
    for (const ElementRun& run : RunsOf(*part.parameter, part.begin, part.end)) {
      by_piece[run.piece->name].push_back(run);
    }
    for (const StoredPart::State& state : part.states) {
      for (auto& [name, runs] : by_piece) {
        std::ranges::sort(runs, {}, &ElementRun::global_begin);
        const auto size = static_cast<std::size_t>(part.end - part.begin);
        targets[{name, state.kind}].push_back(
            {runs, state.values, part.begin, std::vector<bool>(size, false)});
      }
    }
  }
  return targets;
}

/// Copies what the entry's values have of the target; reads them when first needed.
void Fill(Target& target, const StateFile& file, const Entry& entry, at::Tensor& values) {
  std::int64_t at = 0;
  for (const internal::GlobalRun& run : entry.runs) {
    const auto behind = [](const ElementRun& wanted) { return wanted.global_begin + wanted.size; };
    auto wanted = std::ranges::upper_bound(target.runs, run.begin, {}, behind);
    for (; wanted != target.runs.end() && wanted->global_begin < run.begin + run.size; ++wanted) {
      const std::int64_t first = std::max(run.begin, wanted->global_begin);
      const std::int64_t last = std::min(run.begin + run.size, behind(*wanted));
      const std::int64_t place =
          wanted->local_begin + first - wanted->global_begin - target.part_begin;
      if (!values.defined()) values = file.Read(entry);
      target.values.narrow(0, place, last - first)
          .copy_(values.narrow(0, at + first - run.begin, last - first));
      std::fill_n(target.filled.begin() + place, last - first, true);
    }
    at += run.size;
  }
}

void CheckShape(const Entry& entry, const Target& target) {
  if (target.runs.front().piece->global_shape == entry.shape) return;
  throw base::Error(fmt::format("{} has the shape [{}] in the checkpoint, [{}] in the model",
                                entry.name, fmt::join(entry.shape, ", "),
                                fmt::join(target.runs.front().piece->global_shape, ", ")));
}

void CheckFilled(const std::pair<std::string, StateKind>& key, const Target& target) {
  for (const ElementRun& run : target.runs) {
    const auto begin = target.filled.begin() + (run.local_begin - target.part_begin);
    if (std::find(begin, begin + run.size, false) == begin + run.size) continue;
    throw base::Error(
        fmt::format("the checkpoint lacks a part of {} of {}", ToText(key.second), key.first));
  }
}

void CheckSame(const fs::path& folder, const CheckpointFacts& found,
               const CheckpointFacts& expected) {
  if (found.model != expected.model) {
    throw base::Error(fmt::format("{} is the checkpoint of another model", folder.string()));
  }
  if (found.seed != expected.seed) {
    throw base::Error(fmt::format("{} was trained with seed {}, this run has seed {}",
                                  folder.string(), found.seed, expected.seed));
  }
}

void ReadParts(const fs::path& folder, const std::vector<FileFacts>& files,
               const std::vector<StoredPart>& wanted) {
  Targets targets = TargetsOf(wanted);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    const StateFile file(internal::StateFileOf(folder, rank), files[rank]);
    for (const Entry& entry : file.entries()) {
      const auto found = targets.find({entry.name, entry.kind});
      if (found == targets.end()) continue;
      at::Tensor values;
      for (Target& target : found->second) {
        CheckShape(entry, target);
        Fill(target, file, entry, values);
      }
    }
  }
  for (const auto& [key, list] : targets) {
    for (const Target& target : list) CheckFilled(key, target);
  }
}

}  // namespace

std::uint64_t HashOfModel(const plan::Program& program) {
  base::HashBuilder hash;
  for (const plan::PlacedModule& placed : program.modules) {
    const plan::Module& module = placed.module;
    const plan::Transformer& t = module.transformer;
    hash.Add(module.name).Add(static_cast<int>(module.kind)).Add(t.num_layers);
    for (const std::int64_t size : {t.hidden, t.ffn_hidden, t.num_heads, t.num_kv_heads, t.head_dim,
                                    t.vocab_size, t.max_positions, module.input_width,
                                    module.tokens_per_sample, module.llm_tokens_per_sample}) {
      hash.Add(size);
    }
    hash.Add(t.gated_mlp).Add(t.rotary).Add(t.tied_embeddings).Add(t.qk_norm);
    const plan::Projector projector = module.projector.value_or(plan::Projector{.num_layers = 0});
    hash.Add(projector.num_layers).Add(projector.hidden);
  }
  for (const plan::Edge& edge : program.edges) hash.Add(edge.from).Add(edge.to);
  return hash.digest();
}

void CheckPlace(const fs::path& folder, Communicator& control) {
  RunOnAll(control, [&] {
    if (control.index() > 0) return;
    CheckReplaceable(folder);
    TryToMake(Beside(folder, kPartial));
  });
}

void WriteCheckpoint(const fs::path& folder, const CheckpointFacts& facts,
                     const std::vector<StoredPart>& owned, Communicator& control) {
  const bool first = control.index() == 0;
  const fs::path partial = Beside(folder, kPartial);
  RunOnAll(control, [&] {
    if (first) CheckReplaceable(folder);
  });
  try {
    RunOnAll(control, [&] {
      if (first) MakeEmpty(partial);
    });
    FileFacts file;
    RunOnAll(control, [&] {
      const auto rank = static_cast<std::size_t>(control.index());
      file = internal::WriteStateFile(internal::StateFileOf(partial, rank), owned);
    });
    const Manifest manifest{facts, Gather(file, control)};
    RunOnAll(control, [&] {
      if (!first) return;
      internal::WriteManifest(partial, manifest);
      Replace(partial, folder);
    });
  } catch (...) {
    std::error_code ignored;
    if (first) fs::remove_all(partial, ignored);
    throw;
  }
}

CheckpointFacts ReadCheckpoint(const fs::path& folder, const CheckpointFacts& expected,
                               const std::vector<StoredPart>& wanted, Communicator& control) {
  CheckpointFacts facts;
  RunOnAll(control, [&] {
    const Manifest manifest = internal::ReadManifest(folder);
    CheckSame(folder, manifest.facts, expected);
    ReadParts(folder, manifest.files, wanted);
    facts = manifest.facts;
  });
  return facts;
}

}  // namespace isthmus::backend
