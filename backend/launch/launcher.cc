#include "backend/launch/launcher.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "backend/launch/internal/child_process.h"
#include "backend/launch/internal/interrupts.h"
#include "backend/launch/internal/line_reader.h"
#include "backend/launch/internal/port.h"
#include "base/check.h"

namespace isthmus::backend {
namespace {

using internal::ChildProcess;
using internal::LineReader;
using Clock = std::chrono::steady_clock;
using Stream = RankLine::Stream;

constexpr std::size_t kLastLines = 20;
// For systems where the end of a process can't be waited for along with its output.
constexpr std::chrono::milliseconds kLongestWait{200};

// One rank's process and what was heard of it last. Stays in place: readers refer to the process.
class RunningRank {
 public:
  RunningRank(int rank, const internal::Command& command, const LaunchOptions& options)
      : rank_(rank), options_(options), process_(command) {}
  RunningRank(const RunningRank&) = delete;
  RunningRank& operator=(const RunningRank&) = delete;

  bool is_running() const { return is_running_; }
  int rank() const { return rank_; }
  ChildProcess& process() { return process_; }

  void Read() {
    output_.Read(Taker(Stream::kOutput));
    error_.Read(Taker(Stream::kError));
  }

  // Whether it has ended now; all it had to say is read then.
  bool HasEnded() {
    const std::optional<int> status = process_.TryWait();
    if (!status) return false;
    is_running_ = false;
    output_.Drain(Taker(Stream::kOutput));
    error_.Drain(Taker(Stream::kError));
    failure_ = {.rank = rank_,
                .exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0,
                .signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0,
                .last_lines = {last_lines_.begin(), last_lines_.end()}};
    return true;
  }
  bool has_failed() const { return failure_.exit_code != 0 || failure_.signal != 0; }
  // Needs an ended rank.
  const RankFailure& failure() const { return failure_; }

 private:
  LineReader::OnLine Taker(Stream stream) {
    return [this, stream](std::string_view text) {
      last_lines_.emplace_back(text);
      if (last_lines_.size() > kLastLines) last_lines_.pop_front();
      options_.on_line({rank_, stream, text});
    };
  }

  int rank_;
  const LaunchOptions& options_;
  ChildProcess process_;
  LineReader output_{process_.output()};
  LineReader error_{process_.error()};
  std::deque<std::string> last_lines_;
  bool is_running_ = true;
  RankFailure failure_;
};

Clock::duration ToDuration(base::Seconds time) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value()));
}

Variables VariablesOfRank(int rank, std::uint16_t port, const LaunchOptions& options) {
  Variables variables = EnvironmentOfThisProcess();
  variables.emplace("OMP_NUM_THREADS", "1");
  for (const auto& [name, value] : options.environment) variables[name] = value;
  const RankEnvironment environment = {.rank = rank,
                                       .world_size = options.num_ranks,
                                       .local_rank = rank,
                                       .local_world_size = options.num_ranks,
                                       .master_port = port};
  for (const auto& [name, value] : ToVariables(environment)) variables[name] = value;
  return variables;
}

// All ranks of a job from their start to their end.
class LocalJob {
 public:
  explicit LocalJob(const LaunchOptions& options) : options_(options) {
    if (options.port) internal::CheckPortIsFree(*options.port);
    const std::uint16_t port = options.port ? *options.port : internal::FreePort();
    for (int rank = 0; rank < options.num_ranks; ++rank) {
      const internal::Command command = {options.program, options.arguments,
                                         VariablesOfRank(rank, port, options)};
      ranks_.push_back(std::make_unique<RunningRank>(rank, command, options));
    }
  }

  LaunchOutcome Run() {
    while (IsRunning()) {
      Wait();
      while (const std::optional<int> signal = interrupts_.Take()) Interrupt(*signal);
      for (const auto& rank : ranks_) rank->Read();
      Collect();
      EndLate();
    }
    return std::move(outcome_);
  }

 private:
  bool IsRunning() const {
    return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->is_running(); });
  }

  // Until something is to be read, or the next deadline.
  void Wait() {
    std::vector<pollfd> watched = {{interrupts_.descriptor(), POLLIN, 0}};
    for (const auto& rank : ranks_) {
      ChildProcess& process = rank->process();
      for (const int descriptor :
           {process.end().number(), process.output().number(), process.error().number()}) {
        if (descriptor >= 0) watched.push_back({descriptor, POLLIN, 0});
      }
    }
    Clock::duration wait = kLongestWait;
    for (const std::optional<Clock::time_point>& deadline : {ask_at_, kill_at_}) {
      if (deadline) wait = std::min(wait, *deadline - Clock::now());
    }
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
    ::poll(watched.data(), watched.size(), static_cast<int>(std::max<long>(milliseconds, 0)));
  }

  void Interrupt(int signal) {
    const bool is_second = outcome_.interrupt.has_value();
    outcome_.interrupt = signal;
    SignalAll(is_second ? SIGKILL : signal);
    ask_at_.reset();
    if (!is_second) kill_at_ = Clock::now() + ToDuration(options_.patience);
  }

  // Takes note of the ranks that have ended since the last call.
  void Collect() {
    const RankFailure* first = nullptr;
    for (const auto& rank : ranks_) {
      if (!rank->is_running() || !rank->HasEnded() || !rank->has_failed()) continue;
      const RankFailure& failure = rank->failure();
      if (first == nullptr || (first->signal == 0 && failure.signal != 0)) first = &failure;
    }
    // What ends after it was told to has not failed.
    if (first == nullptr || outcome_.first_failure || outcome_.interrupt) return;
    outcome_.first_failure = *first;
    ask_at_ = Clock::now() + ToDuration(options_.grace);
  }

  // Asks, and later kills, what runs on after a failure or an interrupt.
  void EndLate() {
    if (ask_at_ && Clock::now() >= *ask_at_) {
      for (const auto& rank : ranks_) {
        if (rank->is_running()) outcome_.ended.push_back(rank->rank());
      }
      SignalAll(SIGTERM);
      ask_at_.reset();
      kill_at_ = Clock::now() + ToDuration(options_.patience);
    }
    if (kill_at_ && Clock::now() >= *kill_at_) {
      SignalAll(SIGKILL);
      kill_at_.reset();
    }
  }

  void SignalAll(int signal) {
    for (const auto& rank : ranks_) {
      if (rank->is_running()) rank->process().Signal(signal);
    }
  }

  const LaunchOptions& options_;
  internal::Interrupts interrupts_;  // before any rank runs
  std::vector<std::unique_ptr<RunningRank>> ranks_;
  std::optional<Clock::time_point> ask_at_;
  std::optional<Clock::time_point> kill_at_;
  LaunchOutcome outcome_;
};

}  // namespace

std::string Describe(const RankFailure& failure) {
  if (failure.signal == 0) {
    return fmt::format("rank {} ended with exit code {}", failure.rank, failure.exit_code);
  }
  return fmt::format("rank {} was killed by signal {} ({})", failure.rank, failure.signal,
                     ::strsignal(failure.signal));
}

LaunchOutcome Launch(const LaunchOptions& options) {
  ISTHMUS_CHECK(options.num_ranks > 0, "{} ranks", options.num_ranks);
  return LocalJob(options).Run();
}

}  // namespace isthmus::backend
