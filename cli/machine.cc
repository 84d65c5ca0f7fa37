#include "cli/machine.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/error.h"

namespace isthmus::cli {

int NumCores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

base::Bytes MachineMemory() {
  struct sysinfo facts {};
  if (sysinfo(&facts) != 0) throw base::IoError("ask for", "the machine's memory", errno);
  return base::Bytes(static_cast<std::int64_t>(facts.totalram) * facts.mem_unit);
}

}  // namespace isthmus::cli
