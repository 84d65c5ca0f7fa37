#include "reports/internal/other_jobs.h"

#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "reports/internal/page.h"
#include "reports/table.h"

namespace isthmus::reports {
namespace {

class OtherJobs : private Page {
 public:
  explicit OtherJobs(const TextOptions& options) : Page(options) {}

  std::string Render(const std::vector<OtherJobFigure>& jobs) {
    if (jobs.empty()) return {};
    Title("Other jobs", "on other nodes of the cluster, again and again while this one runs");
    Table rows({{"job"},
                {"nodes"},
                {"ranks", Align::kRight},
                {"step alone", Align::kRight},
                {"beside this job", Align::kRight},
                {"", Align::kRight},
                {"steps", Align::kRight}});
    for (const OtherJobFigure& job : jobs) {
      constexpr double kPercent = 100;
      const bool is_known = job.num_steps > 0;
      rows.AddRow({job.name, job.nodes, base::FormatCount(job.num_ranks),
                   base::FormatSeconds(base::Seconds(job.alone_step_time_s)),
                   is_known ? base::FormatSeconds(base::Seconds(job.step_time_s)) : "no whole step",
                   is_known ? fmt::format("{:+.1f} %",
                                          kPercent * (job.step_time_s / job.alone_step_time_s - 1))
                            : "",
                   base::FormatCount(job.num_steps)});
    }
    text_ += rows.RenderText();
    return std::move(text_);
  }
};

}  // namespace

std::string RenderOtherJobs(const std::vector<OtherJobFigure>& jobs, const TextOptions& options) {
  return OtherJobs(options).Render(jobs);
}

nlohmann::ordered_json OtherJobsJson(const std::vector<OtherJobFigure>& jobs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const OtherJobFigure& job : jobs) {
    json.push_back({{"name", job.name},
                    {"nodes", job.nodes},
                    {"num_ranks", job.num_ranks},
                    {"steps", job.num_steps},
                    {"step_time_s", nullptr},
                    {"alone_step_time_s", job.alone_step_time_s}});
    if (job.num_steps > 0) json.back()["step_time_s"] = job.step_time_s;
  }
  return json;
}

}  // namespace isthmus::reports
