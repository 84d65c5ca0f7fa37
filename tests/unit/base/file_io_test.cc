#include "base/file_io.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/test_folder.h"

namespace isthmus::base {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A folder of each test's own.
class FileIo : public testing::Test {
 protected:
  FileIo() { fs::create_directories(folder_); }

  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ =
      tests::TestFolder() / testing::UnitTest::GetInstance()->current_test_info()->name();
};

std::string ReadFailure(const fs::path& path, Bytes limit = Bytes(1 << 20)) {
  try {
    static_cast<void>(ReadFile(path, limit));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(FileIo, WhatIsWrittenIsRead) {
  const std::string content(200'000, 'x');  // More than one buffer.
  WriteFile(folder_ / "new" / "a.txt", content);
  EXPECT_EQ(ReadFile(folder_ / "new" / "a.txt"), content);
}

TEST_F(FileIo, UnreadableFilesSayWhy) {
  EXPECT_THAT(ReadFailure(folder_ / "none"), HasSubstr("none: No such file or directory"));
  EXPECT_THAT(ReadFailure(folder_), HasSubstr("it is a directory"));
  EXPECT_THAT(ReadFailure("/dev/zero"), HasSubstr("it holds more than 1.00 MiB"));
  fs::create_symlink(folder_ / "gone", folder_ / "link");
  EXPECT_THAT(ReadFailure(folder_ / "link"), HasSubstr("No such file"));
}

TEST_F(FileIo, WithoutCommitTheOldContentStays) {
  WriteFile(folder_ / "a", "old");
  {
    AtomicFile file(folder_ / "a");
    file.Write(std::string(100'000, 'n'));
    EXPECT_EQ(ReadFile(folder_ / "a"), "old");
  }
  EXPECT_EQ(ReadFile(folder_ / "a"), "old");
  EXPECT_EQ(num_files(), 1U);  // No temporary file is left.
}

TEST_F(FileIo, LinksAreFollowedNotReplaced) {
  WriteFile(folder_ / "target", "old");
  fs::create_symlink("target", folder_ / "link");
  WriteFile(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(ReadFile(folder_ / "target"), "new");
}

TEST_F(FileIo, DevicesAreWrittenDirectly) {
  WriteFile("/dev/null", "gone");
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
}

TEST_F(FileIo, FailedWritesAreIoErrors) {
  EXPECT_THROW(WriteFile(folder_, "x"), IoError);
  WriteFile(folder_ / "file", "x");
  EXPECT_THROW(WriteFile(folder_ / "file" / "below", "x"), IoError);
  try {
    WriteFile("/dev/full", "x");
    FAIL() << "a full device took a write";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

}  // namespace
}  // namespace isthmus::base
