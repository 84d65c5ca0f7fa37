#include "traces/check_measured.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "traces/meetings.h"

namespace isthmus::traces {
namespace {

using Kind = MeasuredProblem::Kind;

double Microseconds(std::int64_t time_ps) { return static_cast<double>(time_ps) * 1e-6; }

class Checker {
 public:
  Checker(const Trace& trace, const MeasuredCheck& check) : trace_(trace), check_(check) {}

  std::vector<MeasuredProblem> Run() {
    FindEvents();
    for (std::uint32_t index = 0; index < trace_.header.classes.size(); ++index) {
      CheckPresence(index);
      CheckDependencies(index);
      CheckLanes(index);
    }
    for (std::uint32_t group = 0; group < trace_.header.groups.size(); ++group) {
      for (const bool compute : {false, true}) CheckSequence(group, compute);
    }
    CheckCausality();
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const auto& a, const auto& b) { return a.kind < b.kind; });
    return std::move(problems_);
  }

 private:
  const RoleRecord& RoleOf(std::uint32_t rank_class) const {
    return trace_.header.roles[trace_.header.classes[rank_class].role];
  }
  std::string Place(std::uint32_t rank_class, std::uint32_t op) const {
    return fmt::format("rank {}: op {} '{}'", trace_.header.classes[rank_class].representative, op,
                       RoleOf(rank_class).ops[op].name);
  }
  void Add(Kind kind, std::string text) { problems_.push_back({kind, std::move(text)}); }

  void FindEvents() {
    for (const Event& event : trace_.events) {
      const auto [at, is_new] =
          events_.try_emplace({event.rank_class, event.op, event.inner}, &event);
      if (is_new) continue;
      Add(Kind::kMissing, Place(event.rank_class, event.op) + " has two events");
    }
  }
  const Event* Find(std::uint32_t rank_class, std::uint32_t op, std::uint32_t inner) const {
    const auto found = events_.find({rank_class, op, inner});
    return found == events_.end() ? nullptr : found->second;
  }

  void CheckPresence(std::uint32_t rank_class) {
    const std::vector<OpRecord>& ops = RoleOf(rank_class).ops;
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      if (Find(rank_class, op, 0) == nullptr) {
        Add(Kind::kMissing, Place(rank_class, op) + " has no event");
      }
      for (std::uint32_t inner = 1; inner <= ops[op].transfers.size(); ++inner) {
        const bool has_bytes = ops[op].transfers[inner - 1].bytes > 0;
        if (has_bytes == (Find(rank_class, op, inner) != nullptr)) continue;
        Add(Kind::kMissing, fmt::format("{}: transfer {} has {} event", Place(rank_class, op),
                                        inner - 1, has_bytes ? "no" : "no bytes but an"));
      }
    }
  }

  void CheckDependencies(std::uint32_t rank_class) {
    const std::vector<OpRecord>& ops = RoleOf(rank_class).ops;
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      const Event* event = Find(rank_class, op, 0);
      if (event == nullptr) continue;
      for (const Dependency& dependency : ops[op].dependencies) {
        // A transfer without bytes has no event; its value is there at once.
        const Event* producer = Find(rank_class, dependency.op, dependency.transfer);
        if (producer == nullptr) continue;
        const std::int64_t early = producer->end_ps - event->issue_ps;
        if (early <= check_.resolution_ps) continue;
        Add(Kind::kDependency,
            fmt::format("{} began {:.3f} us before op {} '{}', which it needs, was over",
                        Place(rank_class, op), Microseconds(early), dependency.op,
                        ops[dependency.op].name));
      }
    }
  }

  void CheckLanes(std::uint32_t rank_class) {
    const RoleRecord& role = RoleOf(rank_class);
    std::vector<const Event*> last(role.lanes.size(), nullptr);
    for (std::uint32_t op = 0; op < role.ops.size(); ++op) {
      const Event* event = Find(rank_class, op, 0);
      if (event == nullptr) continue;
      const Event*& before = last[role.ops[op].lane];
      if (before != nullptr && before->issue_ps > event->issue_ps + check_.resolution_ps) {
        Add(Kind::kLaneOrder,
            fmt::format("{} began before op {} of the same lane '{}'", Place(rank_class, op),
                        before->op, role.lanes[role.ops[op].lane].name));
      }
      before = event;
    }
  }

  // What a member did on a communicator, in the order of its own events.
  std::vector<const Event*> EventsOn(std::uint32_t rank_class, std::uint32_t communicator,
                                     bool compute) const {
    const std::vector<std::uint32_t>& groups = trace_.header.classes[rank_class].groups;
    const std::vector<OpRecord>& ops = RoleOf(rank_class).ops;
    std::vector<const Event*> events;
    for (std::uint32_t index = 0; index < ops.size(); ++index) {
      const OpRecord& op = ops[index];
      if (op.group == 0 || groups[op.group - 1] != communicator) continue;
      if ((op.kind != "collective") != compute || (!compute && op.bytes == 0)) continue;
      if (const Event* event = Find(rank_class, index, 0)) events.push_back(event);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const Event* a, const Event* b) { return a->issue_ps < b->issue_ps; });
    return events;
  }

  void CheckSequence(std::uint32_t group, bool compute) {
    const std::vector<std::uint32_t>& members = trace_.header.groups[group];
    if (members.empty()) return;
    const std::vector<const Event*> expected = EventsOn(members.front(), group, compute);
    for (std::size_t index = 1; index < members.size(); ++index) {
      const std::vector<const Event*> found = EventsOn(members[index], group, compute);
      if (found.size() != expected.size()) {
        Add(Kind::kSequence, fmt::format("ranks {} and {} met {} and {} times on one communicator",
                                         trace_.header.classes[members.front()].representative,
                                         trace_.header.classes[members[index]].representative,
                                         expected.size(), found.size()));
        continue;
      }
      for (std::size_t place = 0; place < found.size(); ++place) {
        if (IsSame(*expected[place], *found[place])) continue;
        Add(Kind::kSequence,
            fmt::format("{} met {}", Place(expected[place]->rank_class, expected[place]->op),
                        Place(found[place]->rank_class, found[place]->op)));
        break;  // what follows is out of step too
      }
    }
  }

  bool IsSame(const Event& one, const Event& other) const {
    const OpRecord& here = RoleOf(one.rank_class).ops[one.op];
    const OpRecord& there = RoleOf(other.rank_class).ops[other.op];
    return std::tie(here.action, here.bytes, here.category, here.step) ==
           std::tie(there.action, there.bytes, there.category, there.step);
  }

  void CheckCausality() {
    for (const Meeting& meeting : FindMeetings(trace_)) {
      if (!meeting.is_message && !meeting.waits_for_all) continue;
      const auto came = [&](std::size_t index) { return trace_.events[index].issue_ps; };
      const std::size_t late = meeting.is_message
                                   ? meeting.events.front()
                                   : *std::max_element(meeting.events.begin(), meeting.events.end(),
                                                       [&](std::size_t one, std::size_t other) {
                                                         return came(one) < came(other);
                                                       });
      for (const std::size_t index : meeting.events) {
        const Event& event = trace_.events[index];
        const std::int64_t early = came(late) - event.end_ps;
        if (index == late || early <= check_.skew_ps) continue;
        Add(Kind::kCausality,
            fmt::format("{} was over {:.3f} us before {} came", Place(event.rank_class, event.op),
                        Microseconds(early),
                        Place(trace_.events[late].rank_class, trace_.events[late].op)));
      }
    }
  }

  const Trace& trace_;
  const MeasuredCheck& check_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, const Event*> events_;
  std::vector<MeasuredProblem> problems_;
};

}  // namespace

const char* ToText(MeasuredProblem::Kind kind) {
  switch (kind) {
    case Kind::kMissing:
      return "missing";
    case Kind::kDependency:
      return "dependency";
    case Kind::kLaneOrder:
      return "lane_order";
    case Kind::kSequence:
      return "sequence";
    case Kind::kCausality:
      return "causality";
  }
  return "";
}

std::vector<MeasuredProblem> CheckMeasured(const Trace& trace, const MeasuredCheck& check) {
  return Checker(trace, check).Run();
}

}  // namespace isthmus::traces
