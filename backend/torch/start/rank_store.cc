#include "backend/torch/start/rank_store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <condition_variable>
#include <future>
#include <mutex>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "backend/launch/gpu_sharing.h"
#include "backend/torch/comm/words.h"
#include "base/error.h"
#include "plan/program/print.h"

namespace isthmus::backend {
namespace {

// c10d tells of a time-out by itself if it notices one.
constexpr std::chrono::seconds kSlack{2};

double Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string FactsKey(int rank) { return fmt::format("isthmus/facts/{}", rank); }
std::string PositionKey(int rank) { return fmt::format("isthmus/position/{}", rank); }

/// The first line in which two texts differ, of both.
std::pair<std::string, std::string> FirstDifference(const std::string& a, const std::string& b) {
  std::istringstream lines_of_a(a);
  std::istringstream lines_of_b(b);
  std::string line_of_a;
  std::string line_of_b;
  do {
    if (!std::getline(lines_of_a, line_of_a)) line_of_a = "nothing";
    if (!std::getline(lines_of_b, line_of_b)) line_of_b = "nothing";
  } while (line_of_a == line_of_b && line_of_a != "nothing");
  return {line_of_a, line_of_b};
}

}  // namespace

c10::intrusive_ptr<c10d::Store> OpenStore(const RankEnvironment& environment,
                                          std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = environment.rank == 0;
  options.numWorkers = static_cast<std::size_t>(environment.world_size);
  options.timeout = timeout;
  const auto no_meeting = [&environment](const std::string& why) {
    return base::IoError(fmt::format("the ranks did not meet at {}:{}: {}",
                                     environment.master_address, environment.master_port, why));
  };
  std::packaged_task<c10::intrusive_ptr<c10d::Store>()> meet(
      [address = environment.master_address, options] {
        return c10::make_intrusive<c10d::TCPStore>(address, options);
      });
  std::future<c10::intrusive_ptr<c10d::Store>> store = meet.get_future();
  std::thread(std::move(meet)).detach();
  if (store.wait_for(timeout + kSlack) == std::future_status::timeout) {
    throw no_meeting(fmt::format("rank 0 does not answer there after {} s", Seconds(timeout)));
  }
  try {
    return store.get();
  } catch (const std::exception& error) {
    throw no_meeting(WordsOf(error));
  }
}

void CheckAgreement(c10d::Store& store, base::Rank rank, int num_ranks, const std::string& facts) {
  std::string of_rank_0;
  std::string problem;
  try {
    store.set(FactsKey(rank.value()), facts);
    of_rank_0 = store.get_to_str(FactsKey(0));
    for (int other = 1; other < num_ranks; ++other) {
      const std::string theirs = store.get_to_str(FactsKey(other));
      if (theirs == of_rank_0 || !problem.empty()) continue;
      const auto [first, second] = FirstDifference(of_rank_0, theirs);
      problem = fmt::format("rank {} runs something else than rank 0: \"{}\", not \"{}\"", other,
                            second, first);
    }
    // Rank 0 keeps the store: it may not end before everybody has read what they need.
    store.add("isthmus/compared", 1);
    const auto give_up = std::chrono::steady_clock::now() + store.getTimeout();
    while (rank.value() == 0 && store.add("isthmus/compared", 0) < num_ranks &&
           std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::exception& error) {
    throw base::IoError(fmt::format("a rank did not say what it runs: {}", WordsOf(error)));
  }
  if (!problem.empty()) throw base::Error(problem);
}

bool EachHasItsOwnGpu(c10d::Store& store, base::Rank rank, int num_ranks, const std::string& gpu) {
  const auto key = [](int of) { return fmt::format("isthmus/gpu/{}", of); };
  std::vector<std::string> gpus;
  try {
    store.set(key(rank.value()), GpuIdentity(HostIdentity(), gpu));
    for (int other = 0; other < num_ranks; ++other) gpus.push_back(store.get_to_str(key(other)));
  } catch (const std::exception& error) {
    throw base::IoError(
        fmt::format("rank {} did not say which GPU it has: {}", gpus.size(), WordsOf(error)));
  }
  return !AnyIsShared(std::move(gpus));
}

Positions::Positions(const plan::Program& program, base::Rank rank,
                     const c10::intrusive_ptr<c10d::Store>& store)
    : program_(program),
      rank_(rank),
      store_(store->clone()),
      op_(static_cast<std::uint32_t>(program.role(rank).ops.size())) {
  store_->setTimeout(std::chrono::seconds(2));
  teller_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      Tell();
      stopped.wait_for(lock, stop, std::chrono::milliseconds(500), [] { return false; });
    }
  });
}

Positions::~Positions() = default;

void Positions::Tell() {
  const std::uint32_t op = op_.load(std::memory_order_relaxed);
  if (op == told_) return;
  try {
    store_->set(PositionKey(rank_.value()), std::to_string(op));
    told_ = op;
  } catch (const std::exception&) {
    // Rank 0 is gone: the run is over anyway, and whoever waits for it says so.
  }
}

std::string Positions::Describe() {
  teller_.request_stop();
  teller_.join();
  Tell();
  // Others notice at about the same time and tell where they are before they end.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::string text;
  for (int other = 0; other < program_.num_ranks; ++other) {
    if (other == rank_.value()) continue;
    text += "\n  " + DescribeRank(base::Rank{other});
  }
  return text;
}

std::string Positions::DescribeRank(base::Rank rank) {
  try {
    if (!store_->check({PositionKey(rank.value())})) {
      return fmt::format("rank {} has not said where it is", rank.value());
    }
    const auto op =
        static_cast<std::size_t>(std::stoul(store_->get_to_str(PositionKey(rank.value()))));
    const plan::Role& role = program_.role(rank);
    if (op >= role.ops.size()) return fmt::format("rank {} was between steps", rank.value());
    return fmt::format("rank {} was in op {} ({})", rank.value(), op,
                       plan::Describe(program_, role, role.ops[op]));
  } catch (const std::exception&) {
    return fmt::format("rank {}: unknown, rank 0, which keeps the store, does not answer",
                       rank.value());
  }
}

}  // namespace isthmus::backend
