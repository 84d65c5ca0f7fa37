#include "backend/torch/measure/kernel_grid.h"

namespace isthmus::backend {
namespace {

constexpr std::int64_t kKiB = 1024;

}  // namespace

KernelGrid HostGrid(bool quick) {
  KernelGrid grid{.sides = {16, 64, 256, 1024},
                  .held_out_products = {{96, 96, 96},
                                        {128, 384, 128},
                                        {128, 128, 512},
                                        {200, 600, 300},
                                        {32, 512, 128},
                                        {512, 768, 192},
                                        {48, 1000, 96}},
                  .spans = {16, 32, 64, 128, 256, 512, 1024},
                  .widths = {32, 64, 128},
                  .held_out_attentions = {{96, 48}, {192, 64}, {384, 80}},
                  .bytes = {96 * kKiB, 768 * kKiB, 6'144 * kKiB, 49'152 * kKiB},
                  .held_out_bytes = {300 * kKiB, 2'400 * kKiB}};
  if (quick) {
    grid.spans = {16, 64, 256, 1024};
    grid.widths = {32, 128};
    grid.bytes.pop_back();
  }
  return grid;
}

KernelGrid GpuGrid(bool quick) {
  KernelGrid grid{.sides = {64, 256, 1024, 4096, 8192},
                  .held_out_products = {{512, 512, 512},
                                        {2048, 6144, 2048},
                                        {4096, 11008, 4096},
                                        {384, 1536, 384},
                                        {8192, 1280, 5120}},
                  .spans = {64, 256, 1024, 2048, 4096},
                  .widths = {64, 128},
                  .held_out_attentions = {{512, 64}, {1536, 128}},
                  .bytes = {96 * kKiB, 1'536 * kKiB, 24'576 * kKiB, 393'216 * kKiB},
                  .held_out_bytes = {600 * kKiB, 98'304 * kKiB}};
  if (quick) {
    grid.sides = {64, 1024, 8192};
    grid.spans = {64, 512, 4096};
  }
  return grid;
}

}  // namespace isthmus::backend
