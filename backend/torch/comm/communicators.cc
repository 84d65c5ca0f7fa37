#include "backend/torch/comm/communicators.h"

#include <netdb.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "backend/torch/comm/words.h"
#include "base/check.h"
#include "base/error.h"
#include "plan/program/names.h"

namespace isthmus::backend {
namespace {

/// A communicator as all its members know it: what it is for, its name, its members.
using GroupKey = std::tuple<std::string, std::string, std::vector<base::Rank>>;

GroupKey KeyOf(const plan::Program& program, base::Rank rank, const plan::GroupRef& group) {
  return {"collective", plan::SharedGroupName(program, group), program.Members(rank, group)};
}

GroupKey InsideKey(const plan::Program& program, base::Rank rank, std::size_t module,
                   plan::AxisSet axis) {
  const plan::PlacedModule& placed = program.modules[module];
  return {"inside", placed.module.name + " " + plan::ToText(axis), placed.grid.Group(rank, axis)};
}

std::vector<base::Rank> AllRanks(const plan::Program& program) {
  std::vector<base::Rank> all;
  for (int rank = 0; rank < program.num_ranks; ++rank) all.emplace_back(rank);
  return all;
}

/// Every communicator of the program in one order: by the first rank that names it.
std::vector<GroupKey> AllGroups(const plan::Program& program) {
  std::vector<GroupKey> groups{{"control", "world", AllRanks(program)},
                               {"messages", "world", AllRanks(program)}};
  std::set<GroupKey> known;
  const auto add = [&](GroupKey key) {
    if (known.insert(key).second) groups.push_back(std::move(key));
  };
  for (const base::Rank rank : AllRanks(program)) {
    for (std::size_t module = 0; module < program.modules.size(); ++module) {
      if (!program.modules[module].grid.contains(rank)) continue;
      for (const plan::AxisSet axis : {plan::kTp, plan::kCp}) {
        add(InsideKey(program, rank, module, axis));
      }
    }
    for (const plan::GroupRef& group : program.role(rank).groups) {
      add(KeyOf(program, rank, group));
    }
  }
  return groups;
}

// c10d would take the loopback instead, which nobody reaches from another host.
void CheckOwnName() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  addrinfo* found = nullptr;
  const int code = getaddrinfo(name.data(), nullptr, nullptr, &found);
  if (code != 0) {
    throw base::IoError(
        fmt::format("error: this host's name {} has no address: {}\n  hint: GLOO_SOCKET_IFNAME "
                    "names the network interface to use",
                    name.data(), gai_strerror(code)));
  }
  freeaddrinfo(found);
}

std::vector<std::shared_ptr<::gloo::transport::Device>> MakeTransports(Reach reach) {
  using Gloo = c10d::ProcessGroupGloo;
  std::vector<std::shared_ptr<::gloo::transport::Device>> transports;
  const char* const interfaces = std::getenv("GLOO_SOCKET_IFNAME");
  std::istringstream list(interfaces == nullptr ? "" : interfaces);
  for (std::string name; std::getline(list, name, ',');) {
    transports.push_back(Gloo::createDeviceForInterface(name));
  }
  if (!transports.empty()) return transports;
  if (reach == Reach::kOneHost) return {Gloo::createDeviceForHostname("127.0.0.1")};
  CheckOwnName();
  return {Gloo::createDefaultDevice()};
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> GlooFactory::Make(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int index, int size) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout_);
  options->devices = MakeTransports(reach_);
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, index, size, options);
}

Communicators::Communicators(const plan::Program& program, base::Rank rank,
                             const c10::intrusive_ptr<c10d::Store>& store, BackendFactory& factory,
                             BackendFactory& control) {
  std::map<GroupKey, Communicator*> made;
  const std::vector<GroupKey> groups = AllGroups(program);
  for (std::size_t number = 0; number < groups.size(); ++number) {
    const auto& [use, name, members] = groups[number];
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end()) continue;
    c10::intrusive_ptr<c10d::Backend> backend;
    if (members.size() > 1) {
      const auto group_store =
          c10::make_intrusive<c10d::PrefixStore>(fmt::format("group{}", number), store);
      try {
        BackendFactory& maker = number == 0 ? control : factory;
        backend = maker.Make(group_store, static_cast<int>(found - members.begin()),
                             static_cast<int>(members.size()));
      } catch (const std::exception& error) {
        throw base::IoError(fmt::format("error: the communicator {} of {} ranks was not made: {}",
                                        name, members.size(), WordsOf(error)));
      }
    }
    owned_.push_back(std::make_unique<Communicator>(name, members, rank, std::move(backend)));
    made.emplace(groups[number], owned_.back().get());
  }
  control_ = made.at(groups[0]);
  messages_ = made.at(groups[1]);
  for (const plan::GroupRef& group : program.role(rank).groups) {
    collectives_.push_back(made.at(KeyOf(program, rank, group)));
  }
  for (std::size_t module = 0; module < program.modules.size(); ++module) {
    if (!program.modules[module].grid.contains(rank)) continue;
    for (const plan::AxisSet axis : {plan::kTp, plan::kCp}) {
      inside_[{static_cast<std::uint16_t>(module), axis.bits()}] =
          made.at(InsideKey(program, rank, module, axis));
    }
  }
}

Communicator& Communicators::Inside(std::uint16_t module, plan::AxisSet axis) {
  const auto found = inside_.find({module, axis.bits()});
  ISTHMUS_CHECK(found != inside_.end(), "module {} has no communicator over {}", module,
                plan::ToText(axis));
  return *found->second;
}

void Communicators::Abort() {
  for (const auto& communicator : owned_) communicator->Abort();
}

void Communicators::RecordCalls(std::vector<CommCall>* log) {
  for (const auto& communicator : owned_) {
    if (communicator.get() != control_) communicator->RecordCalls(log);
  }
}

void Communicators::EnterOp(std::uint32_t op) {
  for (const auto& communicator : owned_) communicator->EnterOp(op);
}

}  // namespace isthmus::backend
