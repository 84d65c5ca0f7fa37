#include "traces/internal/offset_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace isthmus::traces::internal {
namespace {

using Vector = std::vector<double>;

// By node: (neighbour, how much larger its x is).
std::vector<std::vector<std::pair<std::uint32_t, double>>> NeighboursOf(
    const std::vector<Difference>& differences, std::size_t count) {
  std::vector<std::vector<std::pair<std::uint32_t, double>>> neighbours(count);
  for (const Difference& difference : differences) {
    neighbours[difference.one].emplace_back(difference.other, -difference.value);
    neighbours[difference.other].emplace_back(difference.one, difference.value);
  }
  return neighbours;
}

// Breadth first from the lowest node of each part.
struct Tree {
  Vector x;
  std::vector<std::uint32_t> roots;
};

Tree Span(const std::vector<Difference>& differences, std::size_t count) {
  const auto neighbours = NeighboursOf(differences, count);
  Tree tree{Vector(count, 0), std::vector<std::uint32_t>(count)};
  std::vector<bool> seen(count, false);
  for (std::uint32_t root = 0; root < count; ++root) {
    if (seen[root]) continue;
    std::vector<std::uint32_t> queue = {root};
    seen[root] = true;
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::uint32_t node = queue[at];
      tree.roots[node] = root;
      for (const auto& [next, larger] : neighbours[node]) {
        if (seen[next]) continue;
        seen[next] = true;
        tree.x[next] = tree.x[node] + larger;
        queue.push_back(next);
      }
    }
  }
  return tree;
}

double Dot(const Vector& one, const Vector& other) {
  return std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
}

// The Laplacian of the weighted graph.
Vector Apply(const std::vector<Difference>& differences, const Vector& x) {
  Vector result(x.size(), 0);
  for (const Difference& edge : differences) {
    const double pull = edge.weight * (x[edge.one] - x[edge.other]);
    result[edge.one] += pull;
    result[edge.other] -= pull;
  }
  return result;
}

}  // namespace

std::vector<std::uint32_t> RootsOf(const std::vector<Difference>& differences, std::size_t count) {
  return Span(differences, count).roots;
}

std::vector<double> SolveOffsets(const std::vector<Difference>& differences, std::size_t count) {
  Tree tree = Span(differences, count);
  Vector& x = tree.x;
  Vector residual(count, 0);
  for (const Difference& edge : differences) {
    const double pull = edge.weight * (edge.value - (x[edge.one] - x[edge.other]));
    residual[edge.one] += pull;
    residual[edge.other] -= pull;
  }
  Vector direction = residual;
  double square = Dot(residual, residual);
  constexpr double kNegligible = 1e-24;
  const double enough = square * kNegligible;
  for (std::size_t step = 0; step < count && square > enough; ++step) {
    const Vector image = Apply(differences, direction);
    const double curvature = Dot(direction, image);
    if (!(curvature > 0)) break;
    const double length = square / curvature;
    for (std::size_t node = 0; node < count; ++node) {
      x[node] += length * direction[node];
      residual[node] -= length * image[node];
    }
    const double next = Dot(residual, residual);
    for (std::size_t node = 0; node < count; ++node) {
      direction[node] = residual[node] + next / square * direction[node];
    }
    square = next;
  }
  const Vector solved = x;
  for (std::size_t node = 0; node < count; ++node) x[node] -= solved[tree.roots[node]];
  return x;
}

}  // namespace isthmus::traces::internal
