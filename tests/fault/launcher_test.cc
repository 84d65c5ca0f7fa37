// Ranks that fail, hang, flood or lose their launcher: the outcome says who was first, and no
// process is left. The ranks are shell scripts.

#include "backend/launch/launcher.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace isthmus::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The lines of each rank, both streams together.
using Lines = std::map<int, std::vector<std::string>>;

LaunchOptions Shell(const std::string& script, int num_ranks, Lines* lines = nullptr) {
  LaunchOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  options.num_ranks = num_ranks;
  options.grace = base::Seconds(0.05);
  options.patience = base::Seconds(0.05);
  if (lines != nullptr) {
    options.on_line = [lines](const RankLine& line) {
      (*lines)[line.rank].emplace_back(line.text);
    };
  }
  return options;
}

// Whether a process is there and runs; one that only waits to be collected doesn't.
bool Runs(int id) {
  std::ifstream status("/proc/" + std::to_string(id) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return (status >> number >> name >> state) && state != "Z" && state != "X";
}

// Gives the system time to end a process.
bool IsGone(int id) {
  for (int turn = 0; turn < 500 && Runs(id); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return !Runs(id);
}

TEST(Launcher, RanksSeeTheirPlaceAndTheirLinesCome) {
  Lines lines;
  LaunchOptions options = Shell(
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE; echo $MASTER_ADDR $COLOR >&2; "
      "cat",  // ends at once: nothing is to be read
      2, &lines);
  options.environment = {{"COLOR", "red"}, {"RANK", "7"}};
  const LaunchOutcome outcome = Launch(options);
  EXPECT_TRUE(outcome.ok());
  EXPECT_THAT(lines.at(0), testing::UnorderedElementsAre("0/2 0/2", "127.0.0.1 red"));
  EXPECT_THAT(lines.at(1), testing::UnorderedElementsAre("1/2 1/2", "127.0.0.1 red"));
}

TEST(Launcher, ARankThatFailsIsNamedWithItsLastLinesAndTheOthersEnd) {
  const LaunchOutcome outcome =
      Launch(Shell("[ $RANK = 2 ] && { seq 1 30; exit 3; }; sleep 1000", 4));
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(Describe(*outcome.first_failure), "rank 2 ended with exit code 3");
  EXPECT_THAT(outcome.first_failure->last_lines, SizeIs(20));
  EXPECT_EQ(outcome.first_failure->last_lines.front(), "11");
  EXPECT_EQ(outcome.first_failure->last_lines.back(), "30");
  EXPECT_THAT(outcome.ended, ElementsAre(0, 1, 3));
}

TEST(Launcher, AKilledRankIsNamedWithItsSignal) {
  const LaunchOutcome outcome = Launch(Shell("[ $RANK = 1 ] && kill -9 $$; sleep 1000", 2));
  ASSERT_TRUE(outcome.first_failure.has_value());
  EXPECT_EQ(Describe(*outcome.first_failure), "rank 1 was killed by signal 9 (Killed)");
}

TEST(Launcher, OthersMayReportWithinTheGrace) {
  Lines lines;
  LaunchOptions options =
      Shell("[ $RANK = 1 ] && exit 2; sleep 0.2; echo rank 1 is lost; exit 3", 2, &lines);
  options.grace = base::Seconds(60.0);
  const LaunchOutcome outcome = Launch(options);
  EXPECT_EQ(Describe(*outcome.first_failure), "rank 1 ended with exit code 2");
  EXPECT_THAT(outcome.ended, IsEmpty());
  EXPECT_THAT(lines.at(0), ElementsAre("rank 1 is lost"));
}

TEST(Launcher, OfRanksFoundEndedAtOnceAKilledOneIsTheFirst) {
  // Rank 2's line keeps the launcher busy until both others have ended.
  LaunchOptions options = Shell(
      "case $RANK in 0) sleep 0.1; exit 3;; 1) sleep 0.1; kill -9 $$;; *) echo; sleep 1000;; esac",
      3);
  options.on_line = [](const RankLine&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  };
  EXPECT_EQ(Launch(options).first_failure->rank, 1);
}

TEST(Launcher, ARankThatDoesNotListenIsKilled) {
  const LaunchOutcome outcome =
      Launch(Shell("[ $RANK = 1 ] && { sleep 0.2; exit 1; }; trap '' TERM; while :; do sleep 1; "
                   "done",
                   2));
  EXPECT_EQ(outcome.first_failure->rank, 1);
  EXPECT_THAT(outcome.ended, ElementsAre(0));
}

TEST(Launcher, AFloodIsTakenWholeAndKeepsNobodyWaiting) {
  Lines lines;
  const LaunchOutcome outcome =
      Launch(Shell("[ $RANK = 0 ] && seq 1 200000; [ $RANK = 1 ] && echo here; true", 2, &lines));
  EXPECT_TRUE(outcome.ok());
  EXPECT_THAT(lines.at(0), SizeIs(200'000));
  EXPECT_EQ(lines.at(0).back(), "200000");
  EXPECT_THAT(lines.at(1), ElementsAre("here"));
}

TEST(Launcher, ALineWithoutAnEndComesInPieces) {
  Lines lines;
  const LaunchOutcome outcome = Launch(Shell("head -c 300000 /dev/zero | tr '\\0' x", 1, &lines));
  EXPECT_TRUE(outcome.ok());
  std::size_t size = 0;
  for (const std::string& line : lines.at(0)) {
    EXPECT_LT(line.size(), 2U * 65'536U);
    size += line.size();
  }
  EXPECT_EQ(size, 300'000U);
}

TEST(Launcher, WhatARankStartedEndsWithIt) {
  Lines lines;
  const LaunchOutcome outcome = Launch(Shell("sleep 1000 & echo $!", 2, &lines));
  EXPECT_TRUE(outcome.ok());
  EXPECT_TRUE(IsGone(std::stoi(lines.at(0).front())));
  EXPECT_TRUE(IsGone(std::stoi(lines.at(1).front())));
}

TEST(Launcher, AnInterruptGoesOnToAllRanks) {
  std::vector<int> ids;
  LaunchOptions options = Shell("echo $$; exec sleep 1000", 3);
  options.patience = base::Seconds(60.0);
  options.on_line = [&ids](const RankLine& line) {
    ids.push_back(std::stoi(std::string(line.text)));
    if (ids.size() == 3) ::kill(::getpid(), SIGINT);
  };
  const LaunchOutcome outcome = Launch(options);
  EXPECT_EQ(outcome.interrupt, SIGINT);
  EXPECT_FALSE(outcome.first_failure.has_value());
  for (const int id : ids) EXPECT_FALSE(Runs(id));
}

TEST(Launcher, ASecondInterruptKills) {
  LaunchOptions options = Shell("trap 'echo again' INT; echo; while :; do sleep 0.1; done", 1);
  options.patience = base::Seconds(60.0);
  options.on_line = [](const RankLine&) { ::kill(::getpid(), SIGINT); };
  EXPECT_EQ(Launch(options).interrupt, SIGINT);
}

TEST(Launcher, RanksDieWithTheirLauncher) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const int launcher = ::fork();
  if (launcher == 0) {
    LaunchOptions options = Shell("echo $$; exec sleep 1000", 2);
    options.on_line = [&](const RankLine& line) {
      const int id = std::stoi(std::string(line.text));
      static_cast<void>(!::write(ends[1], &id, sizeof(id)));
    };
    static_cast<void>(Launch(options));
    ::_exit(0);
  }
  int ids[2] = {};
  for (int& id : ids) ASSERT_EQ(::read(ends[0], &id, sizeof(id)), ssize_t{sizeof(id)});
  EXPECT_TRUE(Runs(ids[0]));
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  EXPECT_TRUE(IsGone(ids[0]));
  EXPECT_TRUE(IsGone(ids[1]));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Launcher, APortInUseIsAnError) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket, any, size), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  ASSERT_EQ(::getsockname(socket, any, &size), 0);
  LaunchOptions options = Shell("true", 1);
  options.port = ntohs(address.sin_port);
  try {
    static_cast<void>(Launch(options));
    FAIL() << "the port was taken as free";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("port " + std::to_string(*options.port) + ": Address already in use"));
  }
  ::close(socket);
  EXPECT_TRUE(Launch(options).ok());
}

TEST(Launcher, AProgramThatIsNotThereIsAnError) {
  LaunchOptions options;
  options.program = "/nowhere/isthmus-rank";
  options.num_ranks = 2;
  try {
    static_cast<void>(Launch(options));
    FAIL() << "nothing was started";
  } catch (const base::IoError& error) {
    EXPECT_STREQ(error.what(), "cannot start /nowhere/isthmus-rank: No such file or directory");
  }
}

}  // namespace
}  // namespace isthmus::backend
