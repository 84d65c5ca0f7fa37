#include "backend/torch/checkpoint/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/torch/checkpoint/element_runs.h"
#include "base/error.h"
#include "tests/support/program_jobs.h"
#include "tests/support/test_folder.h"
#include "tests/support/torch_ranks.h"

namespace isthmus::tests {
namespace {

namespace fs = std::filesystem;
using backend::CheckpointFacts;
using backend::Parameter;
using backend::StateKind;
using backend::StoredPart;
using ::testing::HasSubstr;

constexpr CheckpointFacts kFacts{.step = 10,
                                 .updates = 9,
                                 .seed = 7,
                                 .loss_scale = 0.1,
                                 .steps_without_overflow = 3,
                                 .model = 0x1234};

/// A 6 × 4 matrix cut over `size` ranks along `dim`, and a vector that all of them have.
struct Holder {
  Holder(int dim, int rank, int size)
      : matrix{.name = "matrix", .shape = {6, 4}}, vector{.name = "vector", .shape = {5}} {
    auto& cut = matrix.shape[static_cast<std::size_t>(dim)];
    cut /= size;
    matrix.pieces = {{"m.matrix", {6, 4}, dim, cut * rank, 0, cut}};
    vector.pieces = {{.name = "m.vector", .global_shape = {5}}};
    for (Parameter* parameter : {&matrix, &vector}) {
      const std::int64_t elements = backend::NumElements(parameter->shape);
      StoredPart& part = parts.emplace_back(StoredPart{parameter, 0, elements, {}});
      for (const StateKind kind : {StateKind::kWeight, StateKind::kSecondMoment}) {
        part.states.push_back({kind, at::zeros({elements}, at::kDouble)});
      }
    }
  }

  /// The value of an element says where it lies.
  static double ValueAt(const backend::ElementRun& run, std::int64_t offset, StateKind kind) {
    return double(run.global_begin + offset) + (kind == StateKind::kWeight ? 0.25 : 100.5);
  }
  void ForEach(const std::function<void(at::Tensor, double)>& visit) {
    for (const StoredPart& part : parts) {
      for (const auto& run : backend::RunsOf(*part.parameter, part.begin, part.end)) {
        for (const StoredPart::State& state : part.states) {
          for (std::int64_t at = 0; at < run.size; ++at) {
            visit(state.values[run.local_begin + at - part.begin], ValueAt(run, at, state.kind));
          }
        }
      }
    }
  }
  void Set() {
    ForEach([](at::Tensor element, double value) { element.fill_(value); });
  }
  int NumWrong() {
    int wrong = 0;
    ForEach([&](const at::Tensor& element, double value) {
      wrong += element.item<double>() == value ? 0 : 1;
    });
    return wrong;
  }

  Parameter matrix;
  Parameter vector;
  std::vector<StoredPart> parts;
};

fs::path FreshFolder() {
  const fs::path folder = TestFolder() / "checkpoint";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

plan::Program ProgramOf(int num_ranks) {
  return plan::Build(JobOf(plan::Placement::kHomogeneous, {LlmOf({.dp = num_ranks}, 2)}));
}

void Write(const fs::path& folder, int dim, int num_ranks, CheckpointFacts facts = kFacts) {
  RunOnRanks(ProgramOf(num_ranks), [&](base::Rank rank, backend::Communicators& communicators) {
    Holder holder(dim, rank.value(), num_ranks);
    holder.Set();
    backend::WriteCheckpoint(folder, facts, holder.parts, communicators.control());
  });
}

/// What reading on two ranks throws, by rank; "" where all is as it was written.
std::vector<std::string> ReadOnTwo(const fs::path& folder, CheckpointFacts expected = kFacts) {
  std::vector<std::string> errors(2);
  RunOnRanks(ProgramOf(2), [&](base::Rank rank, backend::Communicators& communicators) {
    Holder holder(1, rank.value(), 2);
    try {
      const CheckpointFacts facts =
          backend::ReadCheckpoint(folder, expected, holder.parts, communicators.control());
      if (facts != kFacts || holder.NumWrong() > 0) errors[rank.index()] = "other values";
    } catch (const base::Error& error) {
      errors[rank.index()] = error.what();
    }
  });
  return errors;
}

void ExpectOnBoth(const std::vector<std::string>& errors, const std::string& text) {
  EXPECT_THAT(errors[0], HasSubstr(text));
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(Checkpoint, AnotherLayoutReadsWhatThreeRanksWrote) {
  const fs::path test = FreshFolder();
  Write(test / "saved", 0, 3);
  EXPECT_EQ(ReadOnTwo(test / "saved"), (std::vector<std::string>{"", ""}));
  // Replacing it leaves nothing beside it.
  Write(test / "saved", 1, 2);
  EXPECT_EQ(ReadOnTwo(test / "saved"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(std::distance(fs::directory_iterator(test), {}), 1);
}

TEST(Checkpoint, AMissingOrTruncatedFileIsNamedOnEveryRank) {
  const fs::path test = FreshFolder();
  Write(test / "saved", 0, 3);
  const fs::path file = test / "saved" / "rank-00001.state";
  const auto bytes = fs::file_size(file);
  fs::resize_file(file, bytes - 8);
  ExpectOnBoth(ReadOnTwo(test / "saved"),
               fmt::format("rank-00001.state has {} bytes, {} were written", bytes - 8, bytes));
  fs::remove(file);
  ExpectOnBoth(ReadOnTwo(test / "saved"), "rank-00001.state is missing");
  ExpectOnBoth(ReadOnTwo(test / "none"), "none/manifest");
}

void Overwrite(const fs::path& file, std::int64_t from_end, char byte) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-from_end, std::ios::end);
  stream.put(byte);
}

TEST(Checkpoint, ACorruptByteIsFoundInValuesIndexAndManifest) {
  const fs::path test = FreshFolder();
  const fs::path folder = test / "saved";
  Write(folder, 0, 3);
  // The last entry is the vector's second moment.
  Overwrite(folder / "rank-00000.state", 1, 'x');
  ExpectOnBoth(ReadOnTwo(folder), "corrupt: second_moment of m.vector is not as it was written");
  Write(folder, 0, 3);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(folder / "rank-00002.state"));
  Overwrite(folder / "rank-00002.state", bytes - 30, 'x');
  ExpectOnBoth(ReadOnTwo(folder), "rank-00002.state is corrupt: its index");
  Write(folder, 0, 3);
  Overwrite(folder / "manifest", 40, 'x');
  ExpectOnBoth(ReadOnTwo(folder), "manifest is corrupt");
}

TEST(Checkpoint, AnotherModelOrSeedIsRefused) {
  const fs::path test = FreshFolder();
  const fs::path folder = test / "saved";
  Write(folder, 0, 3);
  CheckpointFacts other = kFacts;
  other.model = 1;
  ExpectOnBoth(ReadOnTwo(folder, other), "the checkpoint of another model");
  other = kFacts;
  other.seed = 8;
  ExpectOnBoth(ReadOnTwo(folder, other), "trained with seed 7, this run has seed 8");
}

TEST(Checkpoint, WhatIsNoCheckpointIsNotReplaced) {
  const fs::path test = FreshFolder();
  std::ofstream(test / "thesis.tex") << "x";
  std::ofstream(test / "manifest") << "of something else";
  for (const fs::path& place : {test, test / "thesis.tex"}) {
    std::vector<std::string> errors(2);
    RunOnRanks(ProgramOf(2), [&](base::Rank rank, backend::Communicators& communicators) {
      Holder holder(0, rank.value(), 2);
      try {
        backend::WriteCheckpoint(place, kFacts, holder.parts, communicators.control());
      } catch (const base::Error& error) {
        errors[rank.index()] = error.what();
      }
    });
    ExpectOnBoth(errors, "is not a checkpoint, and would be replaced by one");
  }
  EXPECT_TRUE(fs::exists(test / "thesis.tex"));
  // Nor is one that has more in it.
  Write(test / "noted", 0, 3);
  std::ofstream(test / "noted" / "notes.txt") << "the good one";
  EXPECT_THROW(Write(test / "noted", 0, 4), std::exception);
  EXPECT_TRUE(fs::exists(test / "noted" / "notes.txt"));
  // An empty folder that was made for it is.
  fs::create_directories(test / "saved");
  Write(test / "saved", 0, 3);
  EXPECT_EQ(ReadOnTwo(test / "saved"), (std::vector<std::string>{"", ""}));
}

TEST(Checkpoint, AnImpossiblePlaceIsKnownBeforeAndAPossibleOneStaysAsItIs) {
  const fs::path test = FreshFolder();
  std::ofstream(test / "file") << "x";
  std::vector<std::string> errors(2);
  RunOnRanks(ProgramOf(2), [&](base::Rank rank, backend::Communicators& communicators) {
    backend::CheckPlace(test / "saved", communicators.control());
    try {
      backend::CheckPlace(test / "file" / "saved", communicators.control());
    } catch (const base::IoError& error) {
      errors[rank.index()] = error.what();
    }
  });
  ExpectOnBoth(errors, "cannot make");
  EXPECT_EQ(std::distance(fs::directory_iterator(test), fs::directory_iterator()), 1);
}

TEST(Checkpoint, WhatLiesInTheWayIsNotTouchedWhenAPlaceIsTried) {
  const fs::path test = FreshFolder();
  // The newest state of a run that was killed before it had its name, and somebody's own folder.
  Write(test / "state.partial", 0, 3);
  fs::create_directories(test / "other.partial");
  std::ofstream(test / "other.partial" / "notes.txt") << "x";
  std::vector<std::string> errors(2);
  std::vector<std::string> long_name(2);
  RunOnRanks(ProgramOf(2), [&](base::Rank rank, backend::Communicators& communicators) {
    backend::CheckPlace(test / "state", communicators.control());
    backend::CheckPlace(test / "made" / "by" / "it", communicators.control());
    try {
      backend::CheckPlace(test / "other", communicators.control());
    } catch (const base::Error& error) {
      errors[rank.index()] = error.what();
    }
    try {
      backend::CheckPlace(test / std::string(300, 'x'), communicators.control());
    } catch (const base::IoError& error) {
      long_name[rank.index()] = error.what();
    }
  });
  ExpectOnBoth(errors, "other.partial is in the way");
  ExpectOnBoth(long_name, "File name too long");
  EXPECT_EQ(ReadOnTwo(test / "state.partial"), (std::vector<std::string>{"", ""}));
  EXPECT_TRUE(fs::exists(test / "other.partial" / "notes.txt"));
  EXPECT_FALSE(fs::exists(test / "made"));
}

TEST(Checkpoint, AFailedWriteThrowsOnEveryRankAndLeavesTheOlderOne) {
  const fs::path test = FreshFolder();
  const fs::path folder = test / "saved";
  Write(folder, 0, 3);
  // The place of the temporary folder is under a file.
  std::ofstream(test / "file") << "x";
  int thrown = 0;
  std::mutex mutex;
  RunOnRanks(ProgramOf(2), [&](base::Rank rank, backend::Communicators& communicators) {
    Holder holder(0, rank.value(), 2);
    try {
      backend::WriteCheckpoint(test / "file" / "saved", kFacts, holder.parts,
                               communicators.control());
    } catch (const base::IoError& error) {
      const std::lock_guard lock(mutex);
      EXPECT_THAT(error.what(), HasSubstr("rank 0: "));
      ++thrown;
    }
  });
  EXPECT_EQ(thrown, 2);
  EXPECT_EQ(ReadOnTwo(folder), (std::vector<std::string>{"", ""}));
}

}  // namespace
}  // namespace isthmus::tests
