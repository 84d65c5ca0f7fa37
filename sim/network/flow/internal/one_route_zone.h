#pragma once

#include <string>
#include <vector>

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

namespace isthmus::sim {

/// A zone in which every route leads over the links that were named last: who starts a flow says
/// which, so SimGrid needs neither routing tables nor a host per GPU.
///
/// Links lie in a store beside it, which is never sealed: they can be added while flows run, so
/// only those that are used exist. This is the only place that includes SimGrid's kernel headers:
/// they are installed, but not promised to stay. The first zone of an engine is its root, which the
/// engine owns.
class OneRouteZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit OneRouteZone(const std::string& name) : NetZoneImpl(name) {}

  simgrid::s4u::Host* AddHost(const std::string& name) { return create_host(name, {1.0}); }
  void SetRoute(std::vector<simgrid::kernel::resource::StandardLinkImpl*>& links) {
    route_ = &links;
  }

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint* /*src*/,
                       const simgrid::kernel::routing::NetPoint* /*dst*/,
                       simgrid::kernel::routing::Route* into, double* /*latency*/) override {
    into->link_list_ = *route_;
  }

  std::vector<simgrid::kernel::resource::StandardLinkImpl*>* route_ = nullptr;
};

/// Where links lie; has to go before the engine does.
class LinkStore : public simgrid::kernel::routing::NetZoneImpl {
 public:
  LinkStore(const std::string& name, const OneRouteZone& users) : NetZoneImpl(name) {
    set_network_model(users.get_network_model());
  }

  simgrid::kernel::resource::StandardLinkImpl* Add(const std::string& name, double bandwidth) {
    simgrid::s4u::Link* link = create_link(name, {bandwidth});
    link->seal();
    return link->get_impl();
  }

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint* /*src*/,
                       const simgrid::kernel::routing::NetPoint* /*dst*/,
                       simgrid::kernel::routing::Route* /*into*/, double* /*latency*/) override {}
};

}  // namespace isthmus::sim
