#include "backend/fake/execute.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "backend/fake/fabric.h"
#include "backend/fake/rank_run.h"
#include "backend/record/program_record.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

/// Threads of one process; more ranks than this are a program for sim.
constexpr int kMostRanks = 1024;

/// All ranks of a run with what they share.
class FakeRun {
 public:
  FakeRun(const plan::Program& program, const ExecuteOptions& options)
      : program_(program),
        options_(options),
        fabric_(program, clock_),
        census_(program.num_ranks),
        failures_(static_cast<std::size_t>(program.num_ranks)) {
    const SharedRun shared{program_, options_, clock_, fabric_, census_};
    for (int index = 0; index < program.num_ranks; ++index) {
      mailboxes_.emplace_back(census_);
      ranks_.emplace_back(shared, base::Rank{index}, mailboxes_.back());
    }
  }

  /// Runs every rank to its end on a thread of its own; then throws on what the lowest rank threw.
  void Run() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t index = 0; index < ranks_.size(); ++index) {
        StartThread(index, threads);
      }
    }
    for (const std::exception_ptr& failure : failures_) {
      if (failure) std::rethrow_exception(failure);
    }
    if (end_ == RankRun::End::kTimedOut) {
      throw base::IoError(fmt::format("no rank has started an op for {} ms\n{}",
                                      options_.patience.count(), Positions()));
    }
  }

  Outcome Describe() const {
    Outcome outcome;
    outcome.deadlock = end_ == RankRun::End::kDeadlock;
    if (outcome.deadlock) outcome.explanation = "deadlock\n" + Positions();
    for (const RankRun& rank : ranks_) {
      outcome.num_ops += rank.num_done();
      outcome.ops_by_lane.push_back(rank.ops_by_lane());
      for (const traces::Event& event : rank.events()) {
        outcome.end_ps = std::max(outcome.end_ps, event.end_ps);
      }
    }
    outcome.channels = fabric_.CountChannels();
    outcome.groups = fabric_.CountGroups();
    return outcome;
  }

  /// Of all ranks, in the order of their starts.
  std::vector<traces::Event> Events() const {
    std::vector<traces::Event> events;
    for (const RankRun& rank : ranks_) {
      events.insert(events.end(), rank.events().begin(), rank.events().end());
    }
    // Events of a rank are in the order of their ends, which decides between equal starts.
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return std::tie(a.start_ps, a.rank_class) < std::tie(b.start_ps, b.rank_class);
    });
    return events;
  }

 private:
  void StartThread(std::size_t index, std::vector<std::jthread>& threads) {
    try {
      threads.emplace_back([this, index] { RunRank(index); });
    } catch (const std::system_error& error) {
      // Those that run wait for this one: without a stop they would never be joined.
      Stop(RankRun::End::kStopped);
      throw base::IoError(
          fmt::format("cannot start a thread for rank {}: {}", index, error.what()));
    }
  }

  void RunRank(std::size_t index) {
    try {
      const RankRun::End end = ranks_[index].Run();
      if (end == RankRun::End::kDeadlock || end == RankRun::End::kTimedOut) Stop(end);
    } catch (...) {
      failures_[index] = std::current_exception();
      Stop(RankRun::End::kStopped);
    }
  }

  /// Ends the run; the first reason counts.
  void Stop(RankRun::End reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!end_) end_ = reason;
    }
    for (Mailbox& mailbox : mailboxes_) mailbox.Stop();
  }

  std::string Positions() const {
    std::string text;
    for (const RankRun& rank : ranks_) {
      if (rank.done()) continue;
      if (!text.empty()) text += "\n";
      text += "  " + rank.Position();
    }
    return text;
  }

  const plan::Program& program_;
  const ExecuteOptions& options_;
  RunClock clock_;
  Fabric fabric_;
  Census census_;
  std::deque<Mailbox> mailboxes_;  // never moved
  std::deque<RankRun> ranks_;
  std::vector<std::exception_ptr> failures_;  // by rank, each written by its thread
  std::mutex mutex_;
  std::optional<RankRun::End> end_;  // why it was stopped, if it was
};

traces::Trailer Summarise(const plan::Program& program, const Outcome& outcome,
                          const std::vector<traces::Event>& events) {
  traces::Trailer trailer;
  trailer.end_ps = outcome.end_ps;
  trailer.num_ops = outcome.num_ops;
  trailer.simulated_ranks = program.num_ranks;
  trailer.step_end_ps.assign(static_cast<std::size_t>(program.num_steps), 0);
  for (const traces::Event& event : events) {
    const plan::Role& role = program.role(base::Rank{static_cast<std::int32_t>(event.rank_class)});
    std::int64_t& end = trailer.step_end_ps[static_cast<std::size_t>(role.ops[event.op].step)];
    end = std::max(end, event.end_ps);
  }
  return trailer;
}

}  // namespace

Outcome Execute(const plan::Program& program, const ExecuteOptions& options,
                traces::TraceSink& sink) {
  if (program.num_ranks > kMostRanks) {
    throw base::Error(
        fmt::format("the fake backend runs each rank as a thread: at most {} ranks, not {}",
                    kMostRanks, program.num_ranks));
  }
  sink.OnHeader(DescribeProgram(program, {.scenario_name = options.scenario_name,
                                          .scenario_hash = options.scenario_hash,
                                          .commit = options.commit,
                                          .machine = "fake",
                                          .seed = options.seed}));
  FakeRun run(program, options);
  run.Run();
  Outcome outcome = run.Describe();
  const std::vector<traces::Event> events = run.Events();
  sink.OnEvents(events);
  sink.OnTrailer(Summarise(program, outcome, events));
  return outcome;
}

}  // namespace isthmus::backend
