#include "reports/alignment.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace isthmus::reports {
namespace {

using traces::Event;
using traces::Header;
using traces::InnerShare;
using traces::OpRecord;
using traces::RoleRecord;
using traces::Trace;

std::string InWords(const Header& header) {
  std::string text = fmt::format("scenario '{}', {} ranks", header.scenario_name, header.num_ranks);
  for (const traces::ModuleRecord& module : header.modules) {
    text += fmt::format(", {} {}", module.name, module.layout);
  }
  return text + fmt::format(", {} microbatches, {} tokens a step (program {})",
                            header.num_microbatches, header.tokens_per_step, header.program_hash);
}

void CheckKinds(const Trace& predicted, const Trace& measured) {
  if (predicted.header.kind != traces::TraceKind::kPredicted) {
    throw base::Error(
        "the first trace is a measured one\n  hint: isthmus compare PREDICTED MEASURED");
  }
  if (measured.header.kind != traces::TraceKind::kMeasured) {
    throw base::Error(
        "the second trace is a predicted one\n  hint: isthmus compare PREDICTED MEASURED");
  }
  if (predicted.events.empty()) {
    throw base::Error("the predicted trace has no times: its profile has no kernels");
  }
  if (measured.events.empty()) throw base::Error("the measured trace has no events");
}

void CheckProgram(const Header& predicted, const Header& measured) {
  if (predicted.program_hash == measured.program_hash) return;
  throw base::Error(
      fmt::format("the traces are of different programs\n  predicted: {}\n  measured: "
                  " {}\n  hint: simulate the scenario that was run, with the same --set",
                  InWords(predicted), InWords(measured)));
}

// By rank, the predicted class it belongs to.
std::vector<std::uint32_t> ClassOfRank(const Header& predicted) {
  std::vector<std::uint32_t> classes(static_cast<std::size_t>(predicted.num_ranks), 0);
  for (std::uint32_t index = 0; index < predicted.classes.size(); ++index) {
    for (const std::int32_t member : predicted.classes[index].members) {
      if (member >= 0 && member < predicted.num_ranks) {
        classes[static_cast<std::size_t>(member)] = index;
      }
    }
  }
  return classes;
}

void CheckClasses(const Header& measured, std::int32_t num_ranks) {
  bool is_plain = measured.num_ranks == num_ranks &&
                  measured.classes.size() == static_cast<std::size_t>(num_ranks);
  for (std::size_t index = 0; is_plain && index < measured.classes.size(); ++index) {
    const traces::RankClass& rank_class = measured.classes[index];
    is_plain =
        rank_class.count == 1 && rank_class.representative == static_cast<std::int32_t>(index);
  }
  if (is_plain) return;
  throw base::Error(fmt::format(
      "the measured trace has {} classes of ranks, but one for each of the {} ranks, in "
      "their order, is needed",
      measured.classes.size(), num_ranks));
}

bool IsSame(const OpRecord& one, const OpRecord& other) {
  return one.kind == other.kind && one.action == other.action && one.group == other.group &&
         std::equal(one.transfers.begin(), one.transfers.end(), other.transfers.begin(),
                    other.transfers.end(), [](const auto& here, const auto& there) {
                      return here.sends == there.sends && here.peer == there.peer;
                    });
}

// Whether op ids of one side mean the same on the other.
bool HaveSameOps(const RoleRecord& one, const RoleRecord& other) {
  return one.groups.size() == other.groups.size() &&
         std::equal(one.ops.begin(), one.ops.end(), other.ops.begin(), other.ops.end(), IsSame);
}

// One class per rank. Groups and peers of single ranks are those of the measured trace: a folded
// one knows only which classes meet.
void TakeApart(const Header& measured, Trace& predicted) {
  const std::vector<std::uint32_t> class_of_rank = ClassOfRank(predicted.header);
  const std::vector<traces::RankClass> folded = std::exchange(predicted.header.classes, {});
  std::vector<std::vector<std::uint32_t>> ranks_of(folded.size());
  for (std::uint32_t rank = 0; rank < class_of_rank.size(); ++rank) {
    ranks_of[class_of_rank[rank]].push_back(rank);
    traces::RankClass own = measured.classes[rank];
    own.role = folded[class_of_rank[rank]].role;
    own.node = folded[class_of_rank[rank]].node;
    if (!HaveSameOps(predicted.header.roles[own.role],
                     measured.roles[measured.classes[rank].role])) {
      throw base::Error(fmt::format(
          "the traces say that they are of one program, but rank {} has other ops in each", rank));
    }
    predicted.header.classes.push_back(std::move(own));
  }
  predicted.header.groups = measured.groups;
  predicted.header.folded = false;
  const auto spread = [&](auto& entries) {
    auto all = std::exchange(entries, {});
    for (const auto& entry : all) {
      for (const std::uint32_t rank : ranks_of[entry.rank_class]) {
        entries.push_back(entry);
        entries.back().rank_class = rank;
      }
    }
  };
  spread(predicted.events);
  spread(predicted.counters);
  spread(predicted.trailer.memory);
  spread(predicted.trailer.waits);
  spread(predicted.trailer.slowdowns);
}

// How the time of a role's Compute ops was spent inside, summed over its ranks, by op.
class TimedPieces {
 public:
  explicit TimedPieces(const Trace& measured) : header_(measured.header) {
    for (const Event& event : measured.events) Add(event);
  }

  /// The split of an op whose inner collectives were timed; empty for others.
  std::vector<InnerShare> SharesOf(std::uint32_t role, std::uint32_t op) const {
    const auto found = inside_.find({role, op});
    const auto whole = whole_.find({role, op});
    if (found == inside_.end() || whole == whole_.end()) return {};
    std::vector<InnerShare> shares;
    std::int64_t rest = whole->second;
    for (const auto& [category, duration] : found->second) {
      shares.push_back({category, std::min(duration, rest)});
      rest -= shares.back().duration_ps;
    }
    shares.insert(shares.begin(), {header_.roles[role].ops[op].category, rest});
    return shares;
  }

 private:
  void Add(const Event& event) {
    const std::uint32_t role_index = header_.classes[event.rank_class].role;
    const RoleRecord& role = header_.roles[role_index];
    const OpRecord& op = role.ops[event.op];
    if (!op.transfers.empty()) return;
    if (event.inner == 0) whole_[{role_index, event.op}] += event.end_ps - event.start_ps;
    // Inner 2k + 2 is the collective of piece k.
    if (event.inner == 0 || event.inner % 2 == 1 || op.block == 0) return;
    const std::vector<traces::PieceRecord>& block = role.blocks[op.block - 1];
    const std::size_t piece = event.inner / 2 - 1;
    if (piece >= block.size()) return;
    inside_[{role_index, event.op}][block[piece].category] += event.end_ps - event.start_ps;
  }

  using Key = std::pair<std::uint32_t, std::uint32_t>;  // role, op
  const Header& header_;
  std::map<Key, std::map<traces::Category, std::int64_t>> inside_;
  std::map<Key, std::int64_t> whole_;
};

// Returns whether a split was borrowed from the prediction.
bool SplitBlocks(const Header& predicted, Trace& measured) {
  const TimedPieces timed(measured);
  bool is_borrowed = false;
  for (std::size_t rank = 0; rank < measured.header.classes.size(); ++rank) {
    const std::uint32_t role = measured.header.classes[rank].role;
    const RoleRecord& twin = predicted.roles[predicted.classes[rank].role];
    std::vector<OpRecord>& ops = measured.header.roles[role].ops;
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      if (!ops[op].inner_shares.empty()) continue;
      ops[op].inner_shares = timed.SharesOf(role, op);
      if (!ops[op].inner_shares.empty() || twin.ops[op].inner_shares.empty()) continue;
      ops[op].inner_shares = twin.ops[op].inner_shares;
      is_borrowed = true;
    }
  }
  return is_borrowed;
}

}  // namespace

AlignedTraces AlignTraces(Trace predicted, Trace measured) {
  CheckKinds(predicted, measured);
  CheckProgram(predicted.header, measured.header);
  CheckClasses(measured.header, predicted.header.num_ranks);
  TakeApart(measured.header, predicted);
  AlignedTraces aligned;
  aligned.skew = traces::PutOnOneClock(measured);
  if (SplitBlocks(predicted.header, measured)) {
    aligned.notes.emplace_back(
        "communication inside blocks was not timed: measured blocks are split as predicted");
  }
  aligned.predicted = std::move(predicted);
  aligned.measured = std::move(measured);
  return aligned;
}

}  // namespace isthmus::reports
