#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/program/internal/words.h"
#include "plan/program/names.h"
#include "plan/program/print.h"

namespace isthmus::plan {
namespace {

/// One op as cells, and what it is but for its microbatch.
struct Line {
  std::vector<std::string> cells;
  std::string alike;
};

class RankPrinter {
 public:
  RankPrinter(const Program& program, base::Rank rank)
      : program_(program), role_(program.role(rank)), rank_(rank) {}

  std::string Print() {
    for (std::uint32_t op = 0; op < role_.ops.size(); ++op) lines_.push_back(LineOf(op));
    std::string text = fmt::format("rank {}: role {}, {}, {} ops\n\n", rank_.value(), role_.name,
                                   Coordinates(), lines_.size());
    return text + internal::Columns(Lanes(), "  ", {0}) + "\n" +
           internal::Columns(Shortened(), "  ", {0, 3});
  }

 private:
  /// "llm tp 1/2 dp 0/4": where the rank is on its modules' grids.
  std::string Coordinates() const {
    std::string text;
    for (const ModuleStage& at : role_.stages) {
      const PlacedModule& module = program_.modules[at.module];
      text += (text.empty() ? "" : ", ") + module.module.name;
      const std::pair<AxisSet, const char*> axes[] = {
          {kTp, "tp"}, {kCp, "cp"}, {kDp, "dp"}, {kPp, "pp"}};
      for (const auto& [axis, name] : axes) {
        const int size = module.grid.size(axis);
        if (size > 1)
          text += fmt::format(" {} {}/{}", name, module.grid.IndexIn(rank_, axis), size);
      }
    }
    return text;
  }

  std::string LaneName(const Lane& lane) const {
    switch (lane.kind) {
      case LaneKind::kCompute:
        return "compute";
      case LaneKind::kCommunicator:
        return GroupName(program_, role_.groups[lane.group]);
      case LaneKind::kP2P:
        return "p2p";
      case LaneKind::kCopyToHost:
        return "copies to host";
      case LaneKind::kCopyToDevice:
        return "copies to device";
    }
    return "";
  }

  std::vector<std::vector<std::string>> Lanes() const {
    std::vector<std::vector<std::string>> rows{{"lane", "what", "ranks"}};
    for (std::size_t lane = 0; lane < role_.lanes.size(); ++lane) {
      rows.push_back({fmt::format("{}", lane), LaneName(role_.lanes[lane])});
      if (role_.lanes[lane].kind != LaneKind::kCommunicator) continue;
      rows.back().push_back(Group(role_.lanes[lane].group));
    }
    return rows;
  }

  std::string Group(std::uint32_t group) const {
    const auto members = program_.Members(rank_, role_.groups[group]);
    return fmt::format("{} ({})", internal::MemberList(members), members.size());
  }

  std::string Transfers(const Op& op) const {
    std::string text;
    for (const Transfer& transfer : role_.transfers_of(op)) {
      const base::Bytes bytes = program_.Size(rank_, transfer.size);
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", transfer.sends ? "to" : "from",
                          program_.Peer(rank_, role_.peers[transfer.peer]).value(),
                          bytes.value() == 0 ? "nothing" : base::FormatBytes(bytes));
    }
    return text;
  }

  Line LineOf(std::uint32_t index) const {
    const Op& op = role_.ops[index];
    std::string amount;
    std::string with;
    if (op.kind == OpKind::kCollective || op.kind == OpKind::kCopy) {
      amount = base::FormatBytes(program_.Size(rank_, op.size));
      if (op.group != kNone32) with = Group(op.group);
    } else if (op.kind == OpKind::kP2P) {
      with = Transfers(op);
    } else if (op.kind == OpKind::kCompute) {
      amount = base::FormatFlops(program_.WorkOf(rank_, op).hardware_flops);
      if (op.group != kNone32) with = "matched over " + Group(op.group);
    }
    if ((op.flags & kBlocksHost) != 0) with += ", blocks the host";
    Op anonymous = op;
    anonymous.microbatch = -1;
    std::string alike = fmt::format("{} {} {} {} {}", Describe(program_, role_, anonymous), op.lane,
                                    amount, with, op.microbatch < 0 ? "" : "mb");
    return {{fmt::format("{}", index), LaneName(role_.lanes[op.lane]),
             Describe(program_, role_, op), amount, with},
            std::move(alike)};
  }

  bool Alike(std::size_t a, std::size_t b, std::size_t count) const {
    for (std::size_t at = 0; at < count; ++at) {
      if (lines_[a + at].alike != lines_[b + at].alike) return false;
    }
    return true;
  }

  /// How often the `period` lines at `start` come, one after the other.
  std::size_t Repeats(std::size_t start, std::size_t period) const {
    std::size_t repeats = 1;
    while (start + (repeats + 1) * period <= lines_.size() &&
           Alike(start, start + repeats * period, period)) {
      ++repeats;
    }
    return repeats;
  }

  /// Three or more rounds alike (but for the microbatch) are shown once.
  std::vector<std::vector<std::string>> Shortened() const {
    constexpr std::size_t kLongestPeriod = 256;
    std::vector<std::vector<std::string>> rows{{"op", "lane", "what", "amount", "with"}};
    for (std::size_t at = 0; at < lines_.size();) {
      std::size_t period = 1;
      std::size_t repeats = 1;
      for (; period <= kLongestPeriod && at + 3 * period <= lines_.size(); ++period) {
        repeats = Repeats(at, period);
        if (repeats >= 3) break;
      }
      if (repeats < 3) period = repeats = 1;
      for (std::size_t line = at; line < at + period; ++line) rows.push_back(lines_[line].cells);
      if (repeats > 1) {
        const bool microbatches = role_.ops[at].microbatch >= 0;
        rows.push_back(
            {"...", "",
             fmt::format("x{} more{} alike", repeats - 1, microbatches ? " microbatches" : "")});
      }
      at += period * repeats;
    }
    return rows;
  }

  const Program& program_;
  const Role& role_;
  base::Rank rank_;
  std::vector<Line> lines_;
};

}  // namespace

std::string PrintRank(const Program& program, base::Rank rank) {
  return RankPrinter(program, rank).Print();
}

}  // namespace isthmus::plan
