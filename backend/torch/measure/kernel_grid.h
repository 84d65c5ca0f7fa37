#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace isthmus::backend {

/// The shapes at which kernels are measured, and shapes between them that are held out.
struct KernelGrid {
  std::vector<std::int64_t> sides;  // m, n and k of products
  std::vector<std::array<std::int64_t, 3>> held_out_products;
  std::vector<std::int64_t> spans;                                         // tokens of an attention
  std::vector<std::int64_t> widths;                                        // of its heads
  std::vector<std::pair<std::int64_t, std::int64_t>> held_out_attentions;  // span, width
  std::vector<std::int64_t> bytes;  // of memory-bound kernels
  std::vector<std::int64_t> held_out_bytes;
};

/// What one core runs in milliseconds. `quick`: fewer spans and sizes.
KernelGrid HostGrid(bool quick);
/// From kernels that the host's launches bound to such that fill a GPU for milliseconds.
KernelGrid GpuGrid(bool quick);

}  // namespace isthmus::backend
