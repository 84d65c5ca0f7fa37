#include "backend/launch/rank_environment.h"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/launch/internal/slurm.h"
#include "base/error.h"

namespace isthmus::backend {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 20;
// What torchrun and PyTorch take where nothing is said.
constexpr std::uint16_t kUsualPort = 29500;
constexpr std::int64_t kFirstSlurmPort = 15000;
constexpr std::int64_t kNumSlurmPorts = 10000;

struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// A variable's name for messages, and its number if that could be read.
struct Number {
  std::string name;
  std::optional<std::int64_t> value;
};

// Reads variables and keeps a list of all that is wrong with them.
class VariableReader {
 public:
  explicit VariableReader(const Variables& variables) : variables_(variables) {}

  bool has(const std::string& name) const { return !Text(name).empty(); }
  // Empty if it is not set.
  std::string_view Text(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string_view() : std::string_view(found->second);
  }
  // The first of `names` that is set, the first one if none is.
  std::string FirstSet(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      if (has(name)) return name;
    }
    return names.front();
  }

  // These two complain where the variable is not there or not as it should be; `what` it means.
  std::string NeededText(const std::string& name, std::string_view what) {
    if (!has(name)) Complain("{} is missing: {}", name, what);
    return std::string(Text(name));
  }
  Number NeededNumber(const std::string& name, Range range, std::string_view what) {
    const std::string text = NeededText(name, what);
    if (text.empty()) return {name, std::nullopt};
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || rest != text.data() + text.size()) {
      Complain("{}=\"{}\" is no whole number: {}", name, text, what);
      return {name, std::nullopt};
    }
    if (number < range.min || number > range.max) {
      Complain("{}={} is out of range: {}, {} to {}", name, number, what, range.min, range.max);
      return {name, std::nullopt};
    }
    return {name, number};
  }

  template <typename... Arguments>
  void Complain(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    problems_.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  // Throws all problems, if there are any.
  void ThrowIfAny(std::string_view launcher) const {
    if (problems_.empty()) return;
    throw base::Error(fmt::format("environment of this rank, as {} sets it:\n  {}", launcher,
                                  fmt::join(problems_, "\n  ")));
  }

 private:
  const Variables& variables_;
  std::vector<std::string> problems_;
};

Number ReadIndex(VariableReader& reader, const std::string& name, std::string_view what) {
  return reader.NeededNumber(name, {0, kMaxRanks - 1}, what);
}
Number ReadCount(VariableReader& reader, const std::string& name, std::string_view what) {
  return reader.NeededNumber(name, {1, kMaxRanks}, what);
}

void CheckBelow(VariableReader& reader, const Number& index, const Number& count) {
  if (!index.value || !count.value || *index.value < *count.value) return;
  reader.Complain("{}={} is not below {}={}", index.name, *index.value, count.name, *count.value);
}

struct Counts {
  Number rank;
  Number world_size;
  Number local_rank;
  Number local_world_size;
};

// Puts the counts into `environment`, if they agree with each other.
void TakeCounts(VariableReader& reader, const Counts& counts, RankEnvironment& environment) {
  CheckBelow(reader, counts.rank, counts.world_size);
  CheckBelow(reader, counts.local_rank, counts.local_world_size);
  const Number& local = counts.local_world_size;
  const Number& world = counts.world_size;
  if (local.value && world.value && *local.value > *world.value) {
    reader.Complain("{}={} is more than {}={}", local.name, *local.value, world.name, *world.value);
  }
  environment.rank = static_cast<int>(counts.rank.value.value_or(0));
  environment.world_size = static_cast<int>(world.value.value_or(1));
  environment.local_rank = static_cast<int>(counts.local_rank.value.value_or(0));
  environment.local_world_size = static_cast<int>(local.value.value_or(1));
}

// A WORLD_SIZE that a job script exported beside another launcher's variables.
void CheckStatedWorldSize(VariableReader& reader, const Number& world_size) {
  if (!reader.has("WORLD_SIZE")) return;
  const Number stated = ReadCount(reader, "WORLD_SIZE", "number of ranks");
  if (!stated.value || !world_size.value || *stated.value == *world_size.value) return;
  reader.Complain("WORLD_SIZE={} contradicts {}={}: unset it, or start as many ranks",
                  *stated.value, world_size.name, *world_size.value);
}

std::uint16_t ReadPort(VariableReader& reader) {
  const Number port = reader.NeededNumber("MASTER_PORT", {1, 65535}, "port of rank 0");
  return static_cast<std::uint16_t>(port.value.value_or(0));
}

RankEnvironment ReadTorchrun(const Variables& variables) {
  VariableReader reader(variables);
  RankEnvironment environment;
  const Counts counts = {ReadIndex(reader, "RANK", "index of this rank"),
                         ReadCount(reader, "WORLD_SIZE", "number of ranks"),
                         ReadIndex(reader, "LOCAL_RANK", "index of this rank on its machine"),
                         ReadCount(reader, "LOCAL_WORLD_SIZE", "number of ranks on this machine")};
  TakeCounts(reader, counts, environment);
  environment.master_address =
      reader.NeededText("MASTER_ADDR", "name or address of rank 0's machine");
  environment.master_port = ReadPort(reader);
  reader.ThrowIfAny("torchrun");
  return environment;
}

RankEnvironment ReadOpenMpi(const Variables& variables) {
  VariableReader reader(variables);
  RankEnvironment environment;
  const Counts counts = {
      ReadIndex(reader, "OMPI_COMM_WORLD_RANK", "index of this rank"),
      ReadCount(reader, "OMPI_COMM_WORLD_SIZE", "number of ranks"),
      ReadIndex(reader, "OMPI_COMM_WORLD_LOCAL_RANK", "index of this rank on its machine"),
      ReadCount(reader, "OMPI_COMM_WORLD_LOCAL_SIZE", "number of ranks on this machine")};
  TakeCounts(reader, counts, environment);
  CheckStatedWorldSize(reader, counts.world_size);
  const bool is_one_machine = environment.local_world_size == environment.world_size;
  if (reader.has("MASTER_ADDR") || !is_one_machine) {
    environment.master_address = reader.NeededText(
        "MASTER_ADDR",
        "Open MPI does not say where rank 0 runs; name its machine, as in "
        "`mpirun -x MASTER_ADDR=$(hostname) ...` where mpirun starts rank 0 on its own machine");
  }
  environment.master_port = reader.has("MASTER_PORT") ? ReadPort(reader) : kUsualPort;
  reader.ThrowIfAny("Open MPI");
  return environment;
}

// Slurm has no number for the ranks of this machine, only a list for all machines.
Number ReadSlurmLocalSize(VariableReader& reader) {
  const std::string name = reader.FirstSet({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  const std::string list = reader.NeededText(name, "number of ranks on each machine");
  const Number node = ReadIndex(reader, "SLURM_NODEID", "index of this machine");
  if (list.empty() || !node.value) return {name, std::nullopt};
  const std::optional<std::int64_t> tasks = internal::TasksOfNode(list, *node.value);
  if (!tasks || *tasks < 1 || *tasks > kMaxRanks) {
    reader.Complain("{}=\"{}\" gives no number of ranks for SLURM_NODEID={}; a list as 8(x3),4",
                    name, list, *node.value);
    return {name, std::nullopt};
  }
  return {fmt::format("{} (machine {})", name, *node.value), tasks};
}

std::string ReadSlurmMaster(VariableReader& reader) {
  if (reader.has("MASTER_ADDR")) return std::string(reader.Text("MASTER_ADDR"));
  const std::string_view nodes = reader.Text("SLURM_STEP_NODELIST");
  if (const std::optional<std::string> host = internal::FirstHost(nodes)) return *host;
  if (!nodes.empty()) {
    reader.Complain("SLURM_STEP_NODELIST=\"{}\" is no list of machines", nodes);
    return {};
  }
  return reader.NeededText("SLURM_LAUNCH_NODE_IPADDR",
                           "it is not known where rank 0 runs; start the ranks with srun, which "
                           "sets this and SLURM_STEP_NODELIST, or give MASTER_ADDR");
}

std::uint16_t ReadSlurmPort(VariableReader& reader) {
  if (reader.has("MASTER_PORT")) return ReadPort(reader);
  const Range any = {0, std::int64_t{1} << 40};
  const Number job =
      reader.NeededNumber("SLURM_JOB_ID", any, "rank 0's port is taken from it; or MASTER_PORT");
  Number step;
  if (reader.has("SLURM_STEP_ID")) step = reader.NeededNumber("SLURM_STEP_ID", any, "the step");
  return static_cast<std::uint16_t>(
      kFirstSlurmPort + (job.value.value_or(0) + step.value.value_or(0)) % kNumSlurmPorts);
}

RankEnvironment ReadSlurm(const Variables& variables) {
  VariableReader reader(variables);
  RankEnvironment environment;
  const std::string world_size = reader.FirstSet({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  const Counts counts = {ReadIndex(reader, "SLURM_PROCID", "index of this rank"),
                         ReadCount(reader, world_size, "number of ranks"),
                         ReadIndex(reader, "SLURM_LOCALID", "index of this rank on its machine"),
                         ReadSlurmLocalSize(reader)};
  TakeCounts(reader, counts, environment);
  CheckStatedWorldSize(reader, counts.world_size);
  environment.master_address = ReadSlurmMaster(reader);
  environment.master_port = ReadSlurmPort(reader);
  reader.ThrowIfAny("Slurm");
  return environment;
}

}  // namespace

RankEnvironment ReadRankEnvironment(const Variables& variables) {
  const VariableReader reader(variables);
  if (reader.has("RANK")) return ReadTorchrun(variables);
  if (reader.has("OMPI_COMM_WORLD_RANK")) return ReadOpenMpi(variables);
  if (reader.has("SLURM_PROCID")) return ReadSlurm(variables);
  throw base::Error(
      "no launcher says which rank this is\n"
      "  hint: start ranks with `isthmus run` (one machine), torchrun, srun or mpirun, which set "
      "RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK (docs/cluster.md)");
}

Variables ToVariables(const RankEnvironment& environment) {
  return {{"RANK", fmt::format("{}", environment.rank)},
          {"WORLD_SIZE", fmt::format("{}", environment.world_size)},
          {"LOCAL_RANK", fmt::format("{}", environment.local_rank)},
          {"LOCAL_WORLD_SIZE", fmt::format("{}", environment.local_world_size)},
          {"MASTER_ADDR", environment.master_address},
          {"MASTER_PORT", fmt::format("{}", environment.master_port)}};
}

Variables EnvironmentOfThisProcess() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace isthmus::backend
