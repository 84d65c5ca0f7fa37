// A disk that fills up at any point leaves the old file as it was and nothing beside it.

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_io.h"
#include "tests/support/test_folder.h"

namespace isthmus::base {
namespace {

namespace fs = std::filesystem;

// While it lives, no file of this process may grow past `limit` bytes: the write that tries is cut
// short, and the next one fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t limit) {
    std::signal(SIGXFSZ, SIG_IGN);  // NOLINT(cert-err33-c): a test may ignore what was before.
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit narrowed = before_;
    narrowed.rlim_cur = limit;
    ::setrlimit(RLIMIT_FSIZE, &narrowed);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

// True when writing 200 kB in pieces, of which only `limit` bytes find room, succeeded.
bool WriteLimited(const fs::path& path, rlim_t limit) {
  const FileSizeLimit full_disk(limit);
  try {
    AtomicFile file(path);
    for (int piece = 0; piece < 200; ++piece) file.Write(std::string(1000, 'n'));
    file.Commit();
  } catch (const IoError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write " + path.string() + ": File too large");
    return false;
  }
  return true;
}

TEST(AtomicFileFault, AFullDiskAtAnyPointLeavesTheOldFile) {
  const fs::path folder = tests::TestFolder();
  const fs::path path = folder / "report.txt";
  WriteFile(path, "old");
  // From the first byte to the last: at the borders of the 64 KiB buffer, and within it.
  for (const rlim_t limit : {0, 1, 999, 65'536, 65'537, 131'072, 199'999}) {
    SCOPED_TRACE(limit);
    EXPECT_FALSE(WriteLimited(path, limit));
    EXPECT_EQ(ReadFile(path), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  }
  EXPECT_TRUE(WriteLimited(path, 200'000));
  EXPECT_EQ(ReadFile(path), std::string(200'000, 'n'));
}

}  // namespace
}  // namespace isthmus::base
