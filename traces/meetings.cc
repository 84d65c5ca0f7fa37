#include "traces/meetings.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace isthmus::traces {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

bool WaitsForAll(const OpRecord& op) {
  static constexpr std::array<const char*, 5> kActions = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring_exchange"};
  if (op.kind != "collective") return true;
  return std::find(kActions.begin(), kActions.end(), op.action) != kActions.end();
}

// Finds the event of (class, op, inner), and lists what each class did with others in host order.
class Matcher {
 public:
  explicit Matcher(const Trace& trace) : trace_(trace) {
    for (std::size_t index = 0; index < trace.events.size(); ++index) {
      const Event& event = trace.events[index];
      event_of_[{event.rank_class, event.op, event.inner}] = index;
    }
  }

  std::vector<Meeting> Run() {
    for (std::uint32_t group = 0; group < trace_.header.groups.size(); ++group) {
      for (const bool compute : {false, true}) MatchGroup(group, compute);
    }
    MatchMessages();
    return std::move(meetings_);
  }

 private:
  const RoleRecord& RoleOf(std::uint32_t rank_class) const {
    return trace_.header.roles[trace_.header.classes[rank_class].role];
  }

  std::size_t Find(std::uint32_t rank_class, std::uint32_t op, std::uint32_t inner) const {
    const auto found = event_of_.find({rank_class, op, inner});
    return found == event_of_.end() ? kNone : found->second;
  }

  // Ops of a class on a communicator, in host order.
  std::vector<std::uint32_t> OpsOn(std::uint32_t rank_class, std::uint32_t communicator,
                                   bool compute) const {
    const std::vector<std::uint32_t>& groups = trace_.header.classes[rank_class].groups;
    const std::vector<OpRecord>& ops = RoleOf(rank_class).ops;
    std::vector<std::uint32_t> found;
    for (std::uint32_t index = 0; index < ops.size(); ++index) {
      const OpRecord& op = ops[index];
      if (op.group == 0 || groups[op.group - 1] != communicator) continue;
      if ((op.kind != "collective") == compute) found.push_back(index);
    }
    return found;
  }

  void MatchGroup(std::uint32_t group, bool compute) {
    const std::vector<std::uint32_t>& members = trace_.header.groups[group];
    std::vector<std::vector<std::uint32_t>> ops;
    std::size_t most = 0;
    for (const std::uint32_t member : members) {
      most = std::max(most, ops.emplace_back(OpsOn(member, group, compute)).size());
    }
    for (std::size_t place = 0; place < most; ++place) {
      Meeting meeting{.events = {}, .waits_for_all = true};
      for (std::size_t index = 0; index < members.size(); ++index) {
        if (place >= ops[index].size()) continue;
        const OpRecord& op = RoleOf(members[index]).ops[ops[index][place]];
        const std::size_t event = Find(members[index], ops[index][place], 0);
        if (event == kNone || (!compute && op.bytes == 0)) continue;
        meeting.events.push_back(event);
        meeting.waits_for_all = meeting.waits_for_all && WaitsForAll(op);
      }
      if (meeting.events.size() > 1) meetings_.push_back(std::move(meeting));
    }
  }

  void MatchMessages() {
    // (sender, receiver) -> its events on both sides, in host order.
    using Ends = std::array<std::vector<std::size_t>, 2>;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> messages;
    for (const auto& [key, index] : event_of_) {
      const auto& [rank_class, op_index, inner] = key;
      const OpRecord& op = RoleOf(rank_class).ops[op_index];
      if (inner == 0 || inner > op.transfers.size()) continue;
      const TransferRecord& transfer = op.transfers[inner - 1];
      const std::uint32_t peer = trace_.header.classes[rank_class].peers[transfer.peer];
      const auto pair = transfer.sends ? std::pair{rank_class, peer} : std::pair{peer, rank_class};
      messages[pair][transfer.sends ? 0 : 1].push_back(index);
    }
    for (const auto& [pair, ends] : messages) {
      const std::size_t count = std::min(ends[0].size(), ends[1].size());
      for (std::size_t place = 0; place < count; ++place) {
        meetings_.push_back({.events = {ends[0][place], ends[1][place]}, .is_message = true});
      }
    }
  }

  const Trace& trace_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> event_of_;
  std::vector<Meeting> meetings_;
};

}  // namespace

std::vector<Meeting> FindMeetings(const Trace& trace) { return Matcher(trace).Run(); }

void MeetPartners(Trace& trace) {
  for (const Meeting& meeting : FindMeetings(trace)) {
    std::int64_t last_came = trace.events[meeting.events.front()].issue_ps;
    for (const std::size_t index : meeting.events) {
      last_came = std::max(last_came, trace.events[index].issue_ps);
    }
    for (const std::size_t index : meeting.events) {
      Event& event = trace.events[index];
      const bool waited = meeting.waits_for_all || last_came <= event.end_ps;
      const std::int64_t start = waited ? std::max(event.start_ps, last_came) : event.start_ps;
      event.start_ps = std::clamp(start, event.issue_ps, std::max(event.issue_ps, event.end_ps));
      event.end_ps = std::max(event.end_ps, event.start_ps);
    }
  }
}

}  // namespace isthmus::traces
