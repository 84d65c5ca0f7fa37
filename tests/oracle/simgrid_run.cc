#include "tests/oracle/simgrid_run.h"

#include <xbt/log.h>

#include <algorithm>
#include <string>
#include <utility>

#include <simgrid/s4u.hpp>

namespace isthmus::oracle {
namespace {

namespace sg = simgrid::s4u;

// A flop takes a microsecond, so that simulated times are far above SimGrid's precision of 1 ns.
constexpr double kFlopsPerSecond = 1e6;

/// SimGrid's settings hold for the life of the process and can't be set again.
void Configure() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  // Plain max-min sharing: no TCP model, no traffic of acknowledgements.
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/weight-S:0",
        "network/bandwidth-factor:1", "network/latency-factor:1"}) {
    sg::Engine::set_config(setting);
  }
}

/// One simulated world; there is at most one at a time in a process.
class World {
 public:
  World() : engine_("oracle") {
    xbt_log_control_set("root.thres:critical");
    Configure();
    zone_ = sg::create_full_zone("zone");
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  sg::NetZone& zone() { return *zone_; }
  /// SimGrid's clock runs on from world to world.
  double begin_s() const { return begin_s_; }
  void Run() {
    zone_->seal();
    engine_.run();
  }

 private:
  sg::Engine engine_;
  double begin_s_ = sg::Engine::get_clock();
  sg::NetZone* zone_ = nullptr;
};

}  // namespace

std::vector<double> EndsOnSharedHost(int cores, const std::vector<SharedJob>& jobs) {
  std::vector<double> ends(jobs.size(), 0);
  World world;
  sg::Host* host = world.zone().create_host("host", kFlopsPerSecond)->set_core_count(cores)->seal();
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    sg::Actor::create("job-" + std::to_string(job), host, [&ends, &jobs, &world, job] {
      sg::this_actor::sleep_until(world.begin_s() + jobs[job].start_s);
      sg::this_actor::execute(jobs[job].work_s * kFlopsPerSecond);
      ends[job] = sg::Engine::get_clock() - world.begin_s();
    });
  }
  world.Run();
  return ends;
}

double EndOfFlows(int num_nodes, double rate, const std::vector<Flow>& flows) {
  return EndOfPhases(num_nodes, rate, {flows});
}

double EndOfPhases(int num_nodes, double rate, const std::vector<std::vector<Flow>>& phases) {
  double end = 0;
  World world;
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> out;
  std::vector<sg::Link*> in;
  for (int node = 0; node < num_nodes; ++node) {
    const std::string name = std::to_string(node);
    hosts.push_back(world.zone().create_host("node-" + name, kFlopsPerSecond)->seal());
    out.push_back(world.zone().create_link("out-" + name, rate)->set_latency(0)->seal());
    in.push_back(world.zone().create_link("in-" + name, rate)->set_latency(0)->seal());
  }
  for (int from = 0; from < num_nodes; ++from) {
    for (int to = 0; to < num_nodes; ++to) {
      if (from == to) continue;
      const auto a = static_cast<std::size_t>(from);
      const auto b = static_cast<std::size_t>(to);
      world.zone().add_route(hosts[a]->get_netpoint(), hosts[b]->get_netpoint(), nullptr, nullptr,
                             {sg::LinkInRoute(out[a]), sg::LinkInRoute(in[b])}, false);
    }
  }
  sg::Actor::create("conductor", hosts.front(), [&] {
    for (const std::vector<Flow>& flows : phases) {
      std::vector<sg::CommPtr> running;
      for (const Flow& flow : flows) {
        running.push_back(sg::Comm::sendto_async(hosts[static_cast<std::size_t>(flow.from)],
                                                 hosts[static_cast<std::size_t>(flow.to)],
                                                 static_cast<uint64_t>(flow.bytes)));
      }
      for (const sg::CommPtr& comm : running) comm->wait();
    }
    end = sg::Engine::get_clock() - world.begin_s();
  });
  world.Run();
  return end;
}

}  // namespace isthmus::oracle
