#pragma once

#include "plan/job.h"
#include "plan/layout/stage_split.h"

namespace isthmus::plan {

/// What a device sustains, roughly: enough to weigh stages against each other.
struct DeviceRates {
  double products_16bit = 0;  // FLOP/s of matrix products
  double products_fp8 = 0;    // FLOP/s
  double attention = 0;       // FLOP/s of the attention core
  double memory = 0;          // B/s
  double link = 0;            // B/s between the ranks of a tp or cp group
};

/// The load of a module's pipeline as the layer split sees it: the time of one microbatch by a
/// roofline over the works of its layers (DescribeWork), forward, backward and recompute. Products
/// and attention take their FLOP at their rates, other kernels bytes/memory, collectives wire
/// bytes/link, beside kernels only what is longer. With vpp the stages are virtual ones. Encoders
/// that inherit the decoder's layout lie on the first stage, the head on the last.
///
/// Needs a module with a layout of its own and rates above 0. Cost: microseconds.
PipelineLoad LoadOf(const Job& job, int module, const DeviceRates& rates);

}  // namespace isthmus::plan
