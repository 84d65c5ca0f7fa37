// Flows on SimGrid 3.32: no actors, no platform but two hosts between which every route leads.
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <simgrid/s4u.hpp>

#include "sim/network/flow/internal/one_route_zone.h"
#include "sim/network/flow_solver.h"

namespace isthmus::sim {

// SimGrid's clock (EngineImpl::now_, private), which goes on from one engine of a process to the
// next: the same flows would then be rounded elsewhere, and end picoseconds apart.
[[gnu::visibility("default")]] extern double simgrid_clock __asm__(
    "_ZN7simgrid6kernel10EngineImpl4now_E");

namespace {

namespace sg = simgrid::s4u;

// SimGrid's unit of time is ours to choose. It takes ends within 1e-9 of one for the same: a tenth
// of a picosecond.
constexpr double kPicosecondsPerUnit = 1e8;
constexpr double kUnitsPerSecond = 1e12 / kPicosecondsPerUnit;
// SimGrid's flows have whole amounts; what is left of one that already ran needn't be whole bytes.
constexpr double kGrainsPerByte = 4096;

// Settings hold for the life of the process and can't be set again.
void Configure() {
  static bool is_done = false;
  if (std::exchange(is_done, true)) return;
  // Plain max-min sharing: no TCP model, no traffic of acknowledgements.
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0", "network/weight-S:0",
        "network/bandwidth-factor:1", "network/latency-factor:1"}) {
    sg::Engine::set_config(setting);
  }
}

class SimGridSolver : public FlowSolver {
 public:
  SimGridSolver() : engine_((CheckAlone(), "isthmus")) {
    xbt_log_control_set("root.thres:critical");
    Configure();
    Listen();
    simgrid_clock = 0;
    listener_ = this;
    zone_ = new OneRouteZone("flows");
    from_ = zone_->AddHost("from");
    to_ = zone_->AddHost("to");
    zone_->SetRoute(route_);
    store_ = std::make_unique<LinkStore>("links", *zone_);
    zone_->seal();
    for (simgrid::kernel::resource::Model* model : engine_.get_all_models())
      if (model->get_name().rfind("Network", 0) == 0) model_ = model;
    if (model_ == nullptr) throw std::logic_error("SimGrid has no network model");
  }
  ~SimGridSolver() override {
    listener_ = nullptr;
    for (const Slot& slot : slots_)  // SimGrid complains about what runs
      if (slot.comm != nullptr) slot.comm->cancel();
  }
  SimGridSolver(const SimGridSolver&) = delete;
  SimGridSolver& operator=(const SimGridSolver&) = delete;

  void AddLink(double bytes_per_second) override {
    links_.push_back(store_->Add(std::to_string(links_.size()),
                                 bytes_per_second * kGrainsPerByte / kUnitsPerSecond));
  }

  void Start(std::int64_t now_ps, std::uint32_t flow, std::span<const std::uint32_t> links,
             double bytes) override {
    if (num_active_ == 0) {
      // Nothing runs: our clock and SimGrid's may be joined anew, which keeps differences small.
      begin_ps_ = now_ps;
      begin_ = sg::Engine::get_clock();
    }
    RunUntil(begin_ + static_cast<double>(now_ps - begin_ps_) / kPicosecondsPerUnit);
    route_.clear();
    for (const std::uint32_t link : links) route_.push_back(links_[link]);
    const std::uint32_t slot = SlotFor(flow);
    const sg::CommPtr comm = sg::Comm::sendto_init(from_, to_);
    comm->set_payload_size(std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::llround(bytes * kGrainsPerByte))));
    comm->set_data(&slots_[slot]);
    comm->vetoable_start();
    slots_[slot].comm = comm;
    ++num_active_;
  }

  std::optional<std::int64_t> NextEnd() override {
    if (!over_.empty()) return over_ps_;
    if (num_active_ == 0) return std::nullopt;
    const double clock = sg::Engine::get_clock();
    next_ = clock + model_->next_occurring_event(clock);
    const double after_ps = (next_ - begin_) * kPicosecondsPerUnit;
    if (after_ps >= static_cast<double>(INT64_MAX - begin_ps_)) return INT64_MAX;
    return begin_ps_ + std::llround(after_ps);
  }

  void TakeEnded(std::int64_t now_ps, std::vector<std::uint32_t>& ended) override {
    for (auto next = NextEnd(); next && *next <= now_ps; next = NextEnd()) {
      if (over_.empty()) RunUntil(next_);
      over_ps_ = *next;
      // Here, not in SimGrid's callback, its objects may be let go.
      for (const std::uint32_t slot : over_) {
        ended.push_back(slots_[slot].flow);
        slots_[slot].comm = nullptr;
        free_slots_.push_back(slot);
      }
      over_.clear();
    }
    std::sort(ended.begin(), ended.end());
  }

 private:
  struct Slot {
    std::uint32_t flow = 0;
    std::uint32_t number = 0;
    sg::CommPtr comm;
  };

  // SimGrid has one engine a process, and would mix them up.
  static void CheckAlone() {
    if (listener_ != nullptr) throw std::logic_error("two flow solvers at once");
  }

  static void Listen() {
    static bool is_done = false;
    if (std::exchange(is_done, true)) return;
    sg::Activity::on_completion_cb([](const sg::Activity& activity) {
      if (listener_ != nullptr) listener_->OnOver(static_cast<const sg::Comm&>(activity));
    });
  }

  void OnOver(const sg::Comm& comm) {
    over_.push_back(comm.get_data<Slot>()->number);
    --num_active_;
  }

  // SimGrid may come back a little early (10 millionths of a unit), and does after each flow's end.
  void RunUntil(double time) {
    while (sg::Engine::get_clock() < time) {
      const double before = sg::Engine::get_clock();
      engine_.run_until(time);
      if (sg::Engine::get_clock() == before) return;  // nearer than its clock can tell
    }
  }

  std::uint32_t SlotFor(std::uint32_t flow) {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back().number = free_slots_.back();
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot].flow = flow;
    return slot;
  }

  static inline SimGridSolver* listener_ = nullptr;

  sg::Engine engine_;
  OneRouteZone* zone_ = nullptr;  // the engine's own
  std::unique_ptr<LinkStore> store_;
  sg::Host* from_ = nullptr;
  sg::Host* to_ = nullptr;
  simgrid::kernel::resource::Model* model_ = nullptr;
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links_;
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> route_;  // of the flow being started
  std::deque<Slot> slots_;  // SimGrid keeps their addresses
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> over_;  // slots of flows that SimGrid has ended
  std::int64_t over_ps_ = 0;
  std::uint32_t num_active_ = 0;
  std::int64_t begin_ps_ = 0;  // our time and …
  double begin_ = 0;           // … SimGrid's when the first of the flows that run now began
  double next_ = 0;
};

}  // namespace
}  // namespace isthmus::sim

extern "C" isthmus::sim::FlowSolver* isthmus_make_flow_solver() {
  return new isthmus::sim::SimGridSolver();
}
