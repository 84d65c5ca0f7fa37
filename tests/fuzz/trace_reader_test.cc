// Stored traces with seeded damage: the reader must give an error that names the file and the
// place, or a trace whose every index is valid; nothing else. Run under the sanitizers as well.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zstd.h>

#include "base/error.h"
#include "base/file_io.h"
#include "base/random.h"
#include "tests/support/random_trace.h"
#include "tests/support/test_folder.h"
#include "traces/internal/trace_index.h"
#include "traces/trace_file.h"

namespace isthmus::traces {
namespace {

namespace fs = std::filesystem;
using base::RandomStream;

void Damage(RandomStream& random, std::string& bytes) {
  const std::int64_t count = random.UniformInt(1, 4);
  for (std::int64_t change = 0; change < count && !bytes.empty(); ++change) {
    const auto last = static_cast<std::int64_t>(bytes.size()) - 1;
    const auto place = static_cast<std::size_t>(random.UniformInt(0, last));
    const auto length = static_cast<std::size_t>(random.UniformInt(1, 16));
    const char value = static_cast<char>(random.UniformInt(0, 255));
    switch (random.UniformInt(0, 4)) {
      case 0:
        bytes[place] = value;
        break;
      case 1:
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << random.UniformInt(0, 7)));
        break;
      case 2:
        bytes.erase(place, length);
        break;
      case 3:
        bytes.insert(place, length, value);
        break;
      default:
        bytes.insert(place, bytes.substr(0, length));
        break;
    }
  }
}

std::string LengthText(std::size_t size) {
  std::string text;
  for (unsigned shift = 0; shift < 32U; shift += 8U) {
    text.push_back(static_cast<char>((size >> shift) & 0xFFU));
  }
  return text;
}

// The plain content of the blocks of a sound file.
std::vector<std::string> PlainBlocks(std::string_view file) {
  std::vector<std::string> blocks;
  for (std::size_t place = 8; place < file.size();) {
    std::size_t size = 0;
    for (std::size_t index = 0; index < 4; ++index) {
      size |= static_cast<std::size_t>(static_cast<unsigned char>(file[place + index]))
              << (8 * index);
    }
    const std::string_view frame = file.substr(place + 4, size);
    std::string plain(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
    const std::size_t got = ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size());
    EXPECT_EQ(got, plain.size());
    blocks.push_back(plain);
    place += 4 + size;
  }
  return blocks;
}

std::string Assemble(const std::vector<std::string>& blocks) {
  std::string file = "ISTHMUS1";
  for (const std::string& plain : blocks) {
    std::string frame(ZSTD_compressBound(plain.size()), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), plain.data(), plain.size(), 1));
    file += LengthText(frame.size()) + frame;
  }
  return file;
}

// Whether the file was read. Fails unless it gives a sound trace or is refused as promised.
bool ReadIsClean(const fs::path& path) {
  Recorder recorder;
  try {
    ReadTraceFile(path, recorder);
  } catch (const base::Error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with(path.string() + ": byte "))
        << error.what();
    return false;
  }
  const Trace& trace = recorder.trace();
  const internal::TraceIndex index(trace.header);
  EXPECT_EQ(index.DefectOfHeader(), std::nullopt);
  for (const Event& event : trace.events) EXPECT_EQ(index.DefectOf(event), std::nullopt);
  for (const MemoryCounter& entry : trace.counters) EXPECT_EQ(index.DefectOf(entry), std::nullopt);
  EXPECT_EQ(index.DefectOf(trace.trailer), std::nullopt);
  return true;
}

// Sound files to start from.
std::vector<std::string> Corpus(const fs::path& path) {
  std::vector<std::string> files;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Replay(tests_support::MakeRandomTrace(seed, {.num_classes = 3, .num_actions = 40}),
           *OpenTraceFile(path));
    files.push_back(base::ReadFile(path));
  }
  return files;
}

void Write(const fs::path& path, const std::string& bytes) {
  fs::remove(path);  // a new file is cheaper than an emptied one, which some disks write at once
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(TraceReaderFuzz, DamagedFilesAreRefused) {
  const fs::path path = tests::TestFolder() / "fuzz_file.isthmus";
  const std::vector<std::string> corpus = Corpus(path);
  int num_read = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    std::string bytes = corpus[seed % corpus.size()];
    RandomStream random(seed, "damage");
    Damage(random, bytes);
    Write(path, bytes);
    num_read += ReadIsClean(path) ? 1 : 0;
  }
  // Checksums and lengths cover all but changes that change nothing.
  EXPECT_LT(num_read, 15);
}

TEST(TraceReaderFuzz, DamageBehindTheChecksumIsHarmless) {
  const fs::path path = tests::TestFolder() / "fuzz_block.isthmus";
  const std::vector<std::string> corpus = Corpus(path);
  int num_read = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::string> blocks = PlainBlocks(corpus[seed % corpus.size()]);
    RandomStream random(seed, "damage");
    const auto last = static_cast<std::int64_t>(blocks.size()) - 1;
    Damage(random, blocks[static_cast<std::size_t>(random.UniformInt(0, last))]);
    if (random.Chance(0.1)) random.Shuffle(std::span(blocks));
    Write(path, Assemble(blocks));
    num_read += ReadIsClean(path) ? 1 : 0;
  }
  // Some damage is another valid trace (a changed time or name): both ways are met.
  EXPECT_GT(num_read, 100);
  EXPECT_LT(num_read, 2900);
}

}  // namespace
}  // namespace isthmus::traces
