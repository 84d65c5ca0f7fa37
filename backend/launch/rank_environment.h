#pragma once

#include <cstdint>
#include <map>
#include <string>

/// Which rank of a job a process is, as the program that started it says in environment variables.
namespace isthmus::backend {

/// A rank's place in its job, and where all ranks meet first.
///
/// Invariant: 0 <= rank < world_size, 0 <= local_rank < local_world_size <= world_size,
/// 0 < master_port < 65536, master_address is not empty.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;                        ///< index among the ranks of this machine
  int local_world_size = 1;                  ///< ranks of this machine
  std::string master_address = "127.0.0.1";  ///< a name or address of rank 0's machine
  std::uint16_t master_port = 0;             ///< on which rank 0 listens
  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

/// Environment variables by name.
using Variables = std::map<std::string, std::string>;

/// Reads what a launcher left in `variables`. The first of these that is there counts, since each
/// may have been started by one further down:
///
/// 1. torchrun and `isthmus run` (RANK is set): RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
///    MASTER_ADDR, MASTER_PORT; all needed.
/// 2. Open MPI (OMPI_COMM_WORLD_RANK is set): OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}.
///    MASTER_ADDR is needed unless all ranks are on one machine; MASTER_PORT is 29500 unless given.
/// 3. Slurm (SLURM_PROCID is set, by srun): SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS,
///    SLURM_LOCALID; the ranks of this machine from SLURM_STEP_TASKS_PER_NODE or
///    SLURM_TASKS_PER_NODE and SLURM_NODEID. Unless MASTER_ADDR is given, the master is the first
///    host of SLURM_STEP_NODELIST, else SLURM_LAUNCH_NODE_IPADDR; unless MASTER_PORT is given, the
///    port is 15000 + (SLURM_JOB_ID + SLURM_STEP_ID) mod 10000: the same on every rank, another for
///    the next job, below the ports that systems hand out.
///
/// Where 2 or 3 counts and WORLD_SIZE is set too, it must say the same.
/// Throws base::Error that lists every variable that is missing, no number, out of its range or
/// contradicts another.
RankEnvironment ReadRankEnvironment(const Variables& variables);

/// The variables that make a process read `environment` (torchrun's names).
Variables ToVariables(const RankEnvironment& environment);

/// All environment variables of this process.
Variables EnvironmentOfThisProcess();

}  // namespace isthmus::backend
