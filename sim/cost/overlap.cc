#include "sim/cost/overlap.h"

#include <algorithm>
#include <variant>

#include <fmt/core.h>

#include "base/check.h"
#include "base/error.h"

namespace isthmus::sim {
namespace {

void SetPair(SegmentCost& cost, double compute, double exposed) {
  cost.compute = base::Seconds(compute);
  cost.exposed = base::Seconds(exposed);
}

}  // namespace

SegmentModel::SegmentModel(const profiles::Profile& profile, const ComputeModel& compute,
                           const CollectiveModel& collectives)
    : compute_(compute),
      collectives_(collectives),
      scatter_chunks_(static_cast<double>(profile.Count("overlap.scatter_out.chunks"))),
      scatter_chunk_latency_(profile.Value("overlap.scatter_out.chunk_latency", "s")),
      min_chunk_rows_(profile.Count("overlap.gather_in.min_chunk_rows")) {
  const auto sms = static_cast<double>(profile.Count("device.num_sms"));
  const double reserved = profile.Number("overlap.scatter_out.reserved_sms");
  gather_contention_ = profile.Number("overlap.gather_in.contention_sms") / sms;
  bulk_contention_ = profile.Number("overlap.bulk.contention_sms") / sms;
  gradient_sync_contention_ = profile.Number("overlap.gradient_sync.contention_sms") / sms;
  if (!(reserved >= 0 && reserved < sms) || scatter_chunks_ < 1) {
    throw base::Error(
        fmt::format("error: profile {}: overlap.scatter_out "
                    "needs fewer reserved SMs than the {} of the "
                    "device and at least one chunk",
                    profile.name(), sms));
  }
  scatter_slowdown_ = sms / (sms - reserved);
  ring_efficiency_ = profile.Number("attention.ring.variable_length.efficiency");
  if (!(ring_efficiency_ > 0 && ring_efficiency_ <= 1)) {
    throw base::Error(fmt::format(
        "error: profile {}: attention.ring.variable_length.efficiency must be above 0, at most 1",
        profile.name()));
  }
}

SegmentModel::Kernels SegmentModel::TimesOf(const plan::Segment& segment) const {
  Kernels times;
  for (const plan::Kernel& kernel : segment.kernels) {
    const double time = compute_.Time(kernel).value();
    (std::holds_alternative<plan::Gemm>(kernel) ? times.products : times.others) += time;
  }
  return times;
}

double SegmentModel::ChunkedProducts(const plan::Segment& segment, int parts) const {
  double time = 0;
  for (const plan::Kernel& kernel : segment.kernels) {
    const auto* gemm = std::get_if<plan::Gemm>(&kernel);
    if (gemm == nullptr) continue;
    const double whole = compute_.Time(*gemm).value();
    if (gemm->m / parts < min_chunk_rows_) {
      time += whole;
      continue;
    }
    plan::Gemm chunk = *gemm;
    chunk.m = (gemm->m + parts - 1) / parts;
    chunk.output_bytes = base::ScaleBytes(gemm->output_bytes, 1.0 / parts);
    time += (whole + parts * compute_.Time(chunk).value()) / 2;
  }
  return time;
}

void SegmentModel::GatherIn(const plan::Segment& segment, int num_ranks, double c,
                            SegmentCost& cost) const {
  const double products = ChunkedProducts(segment, num_ranks);
  const double hidden_by = products * (num_ranks - 1) / num_ranks;  // the own chunk needs no gather
  const double slowdown = gather_contention_ * std::min(c, products);
  SetPair(cost, TimesOf(segment).others + products + slowdown, std::max(0.0, c - hidden_by));
}

void SegmentModel::ScatterOut(const Kernels& kernels, double c, SegmentCost& cost) const {
  const double products =
      kernels.products * scatter_slowdown_ + (scatter_chunks_ - 1) * scatter_chunk_latency_;
  // The last chunk's scatter has no product beside it.
  const double exposed =
      c / scatter_chunks_ + std::max(0.0, (c - products) * (scatter_chunks_ - 1) / scatter_chunks_);
  SetPair(cost, kernels.others + products, exposed);
}

void SegmentModel::Ring(const plan::Segment& segment, double exchange, SegmentCost& cost) const {
  ISTHMUS_CHECK(segment.kernels.size() == static_cast<std::size_t>(segment.collective->steps) + 1,
                "segment {} has {} kernels for {} exchanges", segment.name, segment.kernels.size(),
                segment.collective->steps);
  double compute = 0;
  double exposed = 0;
  for (std::size_t i = 0; i < segment.kernels.size(); ++i) {
    const auto* attention = std::get_if<plan::Attention>(&segment.kernels[i]);
    const bool is_variable = attention != nullptr && attention->variable_length;
    const double time =
        compute_.Time(segment.kernels[i]).value() / (is_variable ? ring_efficiency_ : 1);
    compute += time;
    if (i + 1 < segment.kernels.size()) exposed += std::max(0.0, exchange - time);
  }
  cost.communication = base::Seconds(exchange * segment.collective->steps);
  SetPair(cost, compute, exposed);
}

SegmentCost SegmentModel::Cost(const plan::Segment& segment,
                               const topology::GroupLocality& group) const {
  SegmentCost cost;
  for (const plan::Kernel& kernel : segment.kernels) cost.host += compute_.LaunchGap(kernel);

  double c = 0;
  if (segment.collective) {
    c = collectives_.Time(segment.collective->kind, segment.collective->bytes, group).value();
    cost.core = collectives_.CoreTime(segment.collective->kind, segment.collective->bytes, group) *
                segment.collective->steps;
  }
  cost.communication = base::Seconds(c);
  if (is_serial_) {
    if (segment.collective) c *= segment.collective->steps;
    cost.communication = base::Seconds(c);
    SetPair(cost, TimesOf(segment).sum(), c);
  } else if (segment.overlap == plan::Overlap::kRing && segment.collective) {
    Ring(segment, c, cost);
  } else {
    const Kernels kernels = TimesOf(segment);
    const double g = kernels.sum();
    if (c == 0 || segment.overlap == plan::Overlap::kNone) {
      SetPair(cost, g, c);
    } else if (segment.overlap == plan::Overlap::kBulk) {
      SetPair(cost, g + bulk_contention_ * std::min(g, c), std::max(0.0, c - g));
    } else if (segment.overlap == plan::Overlap::kGatherIn) {
      GatherIn(segment, group.num_ranks, c, cost);
    } else {
      ScatterOut(kernels, c, cost);
    }
  }
  cost.total = cost.host + cost.compute + cost.exposed;
  return cost;
}

}  // namespace isthmus::sim
