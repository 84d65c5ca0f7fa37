#pragma once

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/torch/comm/communicators.h"
#include "plan/program/program.h"

/// Ranks of the real backend as threads of one test: each with one intra-op thread and its own
/// Gloo process groups over a store in memory.
namespace isthmus::tests {

/// Runs `body(rank, store)` on ranks 0 … num_ranks-1 at once and waits for all of them. The calling
/// thread, too, has one intra-op thread from then on: more of them fight for few cores.
///
/// When bodies throw, the exception that was thrown first is thrown here, after every thread has
/// ended; partners of a failed rank end by the time-out of their communicators.
inline void RunOnThreads(
    int num_ranks,
    const std::function<void(base::Rank, const c10::intrusive_ptr<c10d::Store>&)>& body) {
  at::set_num_threads(1);
  // c10d's flight recorder is one for the process and not made for ranks that are threads: it adds
  // groups to its map without a lock.
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*replace=*/1);
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        at::set_num_threads(1);
        body(base::Rank{rank}, store);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

/// The same over the ranks of a program, each with its communicators.
inline void RunOnRanks(const plan::Program& program,
                       const std::function<void(base::Rank, backend::Communicators&)>& body,
                       std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  RunOnThreads(program.num_ranks,
               [&](base::Rank rank, const c10::intrusive_ptr<c10d::Store>& store) {
                 backend::GlooFactory factory(timeout);
                 backend::Communicators communicators(program, rank, store, factory);
                 body(rank, communicators);
               });
}

}  // namespace isthmus::tests
