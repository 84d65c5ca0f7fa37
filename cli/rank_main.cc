// isthmus-rank: one rank of a job. `isthmus calibrate` starts it once per rank.

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include "backend/launch/rank_environment.h"
#include "base/error.h"
#include "cli/measure_rank.h"

namespace isthmus::cli {
namespace {

constexpr int kUserError = 2;
constexpr int kWorldFailure = 3;

int Main(int argc, char** argv) {
  if (const auto exit_code = MeasureIfAsked(argc, argv)) return *exit_code;
  throw base::Error("started by isthmus calibrate, with --measure FILE");
}

}  // namespace
}  // namespace isthmus::cli

int main(int argc, char** argv) {
  const auto report = [](const std::exception& error) {
    fmt::print(stderr, "isthmus-rank: error: {}\n", error.what());
  };
  try {
    return isthmus::cli::Main(argc, argv);
  } catch (const isthmus::base::IoError& error) {
    report(error);
    return isthmus::cli::kWorldFailure;
  } catch (const isthmus::base::Error& error) {
    report(error);
    return isthmus::cli::kUserError;
  } catch (const std::exception& error) {
    report(error);
    return isthmus::cli::kWorldFailure;
  }
}
