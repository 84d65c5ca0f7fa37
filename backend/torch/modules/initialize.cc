#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "backend/torch/modules/chunk.h"
#include "base/random.h"

namespace isthmus::backend {
namespace {

/// A number in [0, 1) that depends on a key and an index alone: SplitMix64's output function
/// (Steele, Lea, Flood 2014) at that place of its sequence.
double UniformAt(std::uint64_t key, std::uint64_t index) {
  std::uint64_t bits = key + (index + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebULL;
  return static_cast<double>((bits ^ (bits >> 31U)) >> 11U) * 0x1p-53;
}

/// Standard normal, by Box and Muller.
double NormalAt(std::uint64_t key, std::uint64_t index) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - UniformAt(key, 2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * UniformAt(key, 2 * index + 1));
}

bool EndsWith(std::string_view name, std::string_view end) { return name.ends_with(end); }

/// The piece's part of its global matrix.
at::Tensor NormalPiece(const ParameterPiece& piece, std::uint64_t seed, double std_dev) {
  const std::uint64_t key = base::RandomStream(seed, piece.name).Next();
  const std::int64_t all_columns = piece.global_shape.back();
  const bool rows_cut = piece.dim <= 0;
  const std::int64_t rows = rows_cut ? piece.size : piece.global_shape.front();
  const std::int64_t columns = rows_cut ? all_columns : piece.size;
  const std::int64_t first_row = rows_cut ? piece.global_begin : 0;
  const std::int64_t first_column = rows_cut ? 0 : piece.global_begin;
  at::Tensor values = at::empty({rows, columns}, at::kDouble);
  double* value = values.mutable_data_ptr<double>();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t index = (first_row + row) * all_columns + first_column + column;
      *value++ = std_dev * NormalAt(key, static_cast<std::uint64_t>(index));
    }
  }
  return values;
}

void Initialize(const Parameter& parameter, std::uint64_t seed, double std_dev, int num_layers) {
  const at::NoGradGuard no_grad;
  if (parameter.shape.size() == 1) {
    parameter.weight.fill_(EndsWith(parameter.name, ".scale") ? 1.0 : 0.0);
    return;
  }
  parameter.weight.zero_();
  for (const ParameterPiece& piece : parameter.pieces) {
    if (piece.size == 0) continue;
    // Output layers of residual branches, so that their sum keeps its variance (GPT-2).
    const bool output = EndsWith(piece.name, ".attention.output") || EndsWith(piece.name, ".down");
    const double depth = output ? std::sqrt(2.0 * std::max(num_layers, 1)) : 1.0;
    const std::int64_t dim = std::max(piece.dim, 0);
    parameter.weight.narrow(dim, piece.local_begin, piece.size)
        .copy_(NormalPiece(piece, seed, std_dev / depth));
  }
}

}  // namespace

void InitializeParameters(const std::vector<Parameter*>& parameters, std::uint64_t seed,
                          double std_dev, int num_layers) {
  for (const Parameter* parameter : parameters) Initialize(*parameter, seed, std_dev, num_layers);
}

}  // namespace isthmus::backend
