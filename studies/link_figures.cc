#include "studies/link_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/program/names.h"
#include "topology/describe.h"

namespace isthmus::studies {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

double InSeconds(sim::SummedPicoseconds ps) {
  return static_cast<double>(ps) / kPicosecondsPerSecond;
}

reports::Traffic TrafficOf(const sim::LinkAccount& account) {
  reports::Traffic traffic;
  for (std::size_t purpose = 0; purpose < account.bytes.size(); ++purpose) {
    const std::int64_t rounded = std::llround(account.bytes[purpose]);
    if (rounded == 0) continue;
    traffic.emplace_back(plan::ToText(static_cast<plan::Purpose>(purpose)), rounded);
  }
  const std::int64_t of_others = std::llround(account.other_bytes);
  if (of_others > 0) traffic.emplace_back("other_jobs", of_others);
  return traffic;
}

std::int64_t SumOf(const reports::Traffic& traffic) {
  std::int64_t sum = 0;
  for (const auto& [purpose, bytes] : traffic) sum += bytes;
  return sum;
}

/// The figures under way.
class LinkDescription {
 public:
  LinkDescription(const sim::Outcome& outcome, const scenarios::Scenario& scenario,
                  const plan::Program& program, const topology::Cluster& cluster)
      : outcome_(outcome),
        history_(*outcome.link_history),
        scenario_(scenario),
        program_(program),
        cluster_(cluster) {}

  reports::LinkFigures Figures(std::size_t num_hottest) const {
    reports::LinkFigures figures{
        .end_s = InSeconds(outcome_.end_ps),
        .bin_s = InSeconds(history_.bin_ps),
        .num_slow_flows = static_cast<std::int64_t>(history_.num_slow_flows),
        .lost_s = InSeconds(history_.lost_ps)};
    const std::vector<double> utilisations = Utilisations();
    AddKinds(utilisations, figures);
    AddHottest(utilisations, num_hottest, figures);
    AddLosses(figures);
    return figures;
  }

 private:
  const topology::Link& link(std::size_t number) const { return outcome_.links[number].link; }

  // What a link carried in the whole run, as a share of what it could have.
  std::vector<double> Utilisations() const {
    std::vector<double> utilisations;
    for (const sim::LinkTraffic& use : outcome_.links) {
      utilisations.push_back(use.account.Sum() /
                             (use.link.bandwidth.value() * InSeconds(outcome_.end_ps)));
    }
    return utilisations;
  }

  double LengthOf(std::size_t bin) const {
    const auto begin = static_cast<std::int64_t>(bin) * history_.bin_ps;
    return InSeconds(std::min(history_.bin_ps, outcome_.end_ps - begin));
  }

  void AddKinds(const std::vector<double>& utilisations, reports::LinkFigures& figures) const {
    struct Sums {
      reports::LinkKindUse use;
      sim::LinkAccount account;
    };
    std::map<topology::LinkKind, Sums> kinds;
    for (std::size_t number = 0; number < utilisations.size(); ++number) {
      if (utilisations[number] == 0) continue;
      auto& [use, account] = kinds[link(number).kind];
      ++use.num_links;
      use.utilisation += utilisations[number];
      use.highest_utilisation = std::max(use.highest_utilisation, utilisations[number]);
      use.over_time.resize(history_.num_bins);
      const std::vector<double> over_time = OverTime(number);
      for (std::size_t bin = 0; bin < over_time.size(); ++bin) use.over_time[bin] += over_time[bin];
      const sim::LinkAccount& here = outcome_.links[number].account;
      for (std::size_t purpose = 0; purpose < here.bytes.size(); ++purpose)
        account.bytes[purpose] += here.bytes[purpose];
      account.other_bytes += here.other_bytes;
    }
    for (auto& [kind, sums] : kinds) {
      const auto num_links = static_cast<double>(sums.use.num_links);
      sums.use.kind = topology::NameOf(kind);
      sums.use.utilisation /= num_links;
      for (double& utilisation : sums.use.over_time) utilisation /= num_links;
      sums.use.traffic = TrafficOf(sums.account);
      sums.use.bytes = SumOf(sums.use.traffic);
      figures.kinds.push_back(std::move(sums.use));
    }
  }

  std::vector<double> OverTime(std::size_t number) const {
    std::vector<double> utilisations;
    for (const std::int64_t bytes : history_.bytes_of(number)) {
      const double room = link(number).bandwidth.value() * LengthOf(utilisations.size());
      utilisations.push_back(static_cast<double>(bytes) / room);
    }
    return utilisations;
  }

  void AddHottest(const std::vector<double>& utilisations, std::size_t most,
                  reports::LinkFigures& figures) const {
    std::vector<std::size_t> order;
    for (std::size_t number = 0; number < utilisations.size(); ++number)
      if (utilisations[number] > 0) order.push_back(number);
    // Equal links by their place in the cluster.
    std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
      return std::make_pair(-utilisations[left], link(left).id) <
             std::make_pair(-utilisations[right], link(right).id);
    });
    order.resize(std::min(order.size(), most));
    for (const std::size_t number : order) {
      const sim::LinkAccount& account = outcome_.links[number].account;
      reports::LinkUse use{.kind = std::string(topology::NameOf(link(number).kind)),
                           .from = topology::LabelOf(cluster_, link(number).from),
                           .to = topology::LabelOf(cluster_, link(number).to),
                           .bytes_per_second = link(number).bandwidth.value(),
                           .traffic = TrafficOf(account),
                           .utilisation = utilisations[number],
                           .busy_s = InSeconds(account.busy_ps),
                           .over_time = OverTime(number)};
      use.bytes = SumOf(use.traffic);
      figures.hottest.push_back(std::move(use));
    }
  }

  reports::FlowCause Describe(const sim::LinkCause& cause) const {
    const plan::Op op{.kind = cause.kind, .detail = cause.detail};
    if (cause.job > 0) {
      const scenarios::OtherJob& job = scenario_.other_jobs[cause.job - 1U];
      return {.job = job.name,
              .module = job.scenario.job.modules[cause.module].name,
              .purpose = plan::ToText(cause.purpose),
              .action = plan::ActionName(op)};
    }
    return {.module = program_.modules[cause.module].module.name,
            .purpose = plan::ToText(cause.purpose),
            .action = plan::ActionName(op)};
  }

  void AddLosses(reports::LinkFigures& figures) const {
    struct Sums {
      reports::LinkLossFigure loss;
      sim::SummedPicoseconds lost_ps = 0;
      const sim::LinkLoss* worst = nullptr;
    };
    std::map<std::tuple<sim::LinkCause, sim::LinkCause, topology::LinkKind>, Sums> kinds;
    for (const sim::LinkLoss& loss : history_.losses) {
      Sums& sums = kinds[{loss.victim, loss.culprit, link(loss.link).kind}];
      ++sums.loss.num_links;
      sums.loss.num_flows += static_cast<std::int64_t>(loss.num_flows);
      sums.loss.longest_s = std::max(sums.loss.longest_s, InSeconds(loss.longest_ps));
      sums.lost_ps += loss.lost_ps;
      if (sums.worst == nullptr || loss.lost_ps > sums.worst->lost_ps) sums.worst = &loss;
    }
    for (auto& [key, sums] : kinds) {
      const topology::Link& worst = link(sums.worst->link);
      sums.loss.victim = Describe(sums.worst->victim);
      sums.loss.culprit = Describe(sums.worst->culprit);
      sums.loss.kind = topology::NameOf(worst.kind);
      sums.loss.lost_s = InSeconds(sums.lost_ps);
      sums.loss.worst_from = topology::LabelOf(cluster_, worst.from);
      sums.loss.worst_to = topology::LabelOf(cluster_, worst.to);
      sums.loss.worst_lost_s = InSeconds(sums.worst->lost_ps);
      figures.losses.push_back(std::move(sums.loss));
    }
    std::ranges::stable_sort(figures.losses, std::ranges::greater{},
                             &reports::LinkLossFigure::lost_s);
  }

  const sim::Outcome& outcome_;
  const sim::LinkHistory& history_;
  const scenarios::Scenario& scenario_;
  const plan::Program& program_;
  const topology::Cluster& cluster_;
};

}  // namespace

reports::LinkFigures DescribeLinks(const sim::Outcome& outcome, const scenarios::Scenario& scenario,
                                   const plan::Program& program, const topology::Cluster& cluster,
                                   std::size_t num_hottest) {
  return LinkDescription(outcome, scenario, program, cluster).Figures(num_hottest);
}

}  // namespace isthmus::studies
