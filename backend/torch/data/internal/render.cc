#include "backend/torch/data/internal/render.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "backend/torch/data/internal/words.h"

namespace isthmus::backend::internal {
namespace {

constexpr double kNoise = 0.05;

// The larger of the two most equal factors of n.
std::int64_t LongSide(std::int64_t n) {
  std::int64_t side = 1;
  for (std::int64_t factor = 1; factor * factor <= n; ++factor) {
    if (n % factor == 0) side = factor;
  }
  return n / side;
}

struct Figure {
  int form = 0;
  double x = 0.0;
  double y = 0.0;
  double radius = 0.0;
};

// Whether the point is inside; the image is the unit square, y grows downwards.
bool Covers(const Figure& figure, double x, double y) {
  const double right = std::abs(x - figure.x);
  const double down = y - figure.y;
  const double r = figure.radius;
  switch (figure.form) {
    case 0:  // circle
      return right * right + down * down < r * r;
    case 1:  // square
      return std::max(right, std::abs(down)) < 0.9 * r;
    case 2:  // triangle, point up
      return std::abs(down) < r && 2.0 * right < down + r;
    default:  // cross
      return std::min(right, std::abs(down)) < r / 3.0 && std::max(right, std::abs(down)) < r;
  }
}

constexpr std::array<std::array<double, 3>, 4> kColours = {
    {{0.9, 0.1, 0.1}, {0.1, 0.8, 0.2}, {0.2, 0.3, 1.0}, {1.0, 0.9, 0.1}}};

}  // namespace

std::vector<std::int64_t> DrawImage(base::RandomStream& random, std::int64_t tokens,
                                    std::int64_t width, std::span<float> patches) {
  const auto size = random.UniformInt(0, 1);
  const auto colour = random.UniformInt(0, 3);
  const auto form = random.UniformInt(0, 3);
  const auto vertical = random.UniformInt(0, 1);
  const auto horizontal = random.UniformInt(0, 1);
  const auto place = [&](std::int64_t second) {
    return (second == 1 ? 0.7 : 0.3) + 0.1 * (random.UniformReal() - 0.5);
  };
  const Figure figure{.form = static_cast<int>(form),
                      .x = place(horizontal),
                      .y = place(vertical),
                      .radius = size == 1 ? 0.3 : 0.15};
  const std::int64_t channels = width % 3 == 0 ? 3 : 1;
  const std::int64_t columns = LongSide(tokens);
  const std::int64_t patch_columns = LongSide(width / channels);
  const std::int64_t patch_rows = width / channels / patch_columns;
  const double pixel_width = 1.0 / static_cast<double>(columns * patch_columns);
  const double pixel_height = 1.0 / static_cast<double>(tokens / columns * patch_rows);
  std::size_t at = 0;
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      // One channel alone has to tell the colours apart by their brightness.
      const double shade =
          channels == 3
              ? kColours[static_cast<std::size_t>(colour)][static_cast<std::size_t>(channel)]
              : 0.4 + 0.2 * static_cast<double>(colour);
      for (std::int64_t pixel = 0; pixel < patch_rows * patch_columns; ++pixel) {
        const std::int64_t row = token / columns * patch_rows + pixel / patch_columns;
        const std::int64_t column = token % columns * patch_columns + pixel % patch_columns;
        const double x = (static_cast<double>(column) + 0.5) * pixel_width;
        const double y = (static_cast<double>(row) + 0.5) * pixel_height;
        const double value = Covers(figure, x, y) ? 2.0 * shade - 1.0 : -1.0;
        patches[at++] = static_cast<float>(value + random.Normal(0.0, kNoise));
      }
    }
  }
  return {kFirstSize + size, kFirstColour + colour, kFirstForm + form, kFirstVertical + vertical,
          kFirstHorizontal + horizontal};
}

std::vector<std::int64_t> DrawClip(base::RandomStream& random, std::int64_t tokens,
                                   std::int64_t width, std::span<float> frames) {
  const auto loudness = random.UniformInt(0, 1);
  const auto pitch = random.UniformInt(0, 2);
  const auto contour = random.UniformInt(0, 2);
  const double amplitude = loudness == 1 ? 1.5 : 0.6;
  const double start = 0.2 + 0.3 * static_cast<double>(pitch);
  constexpr std::array<double, 3> kSlopes = {0.0, 0.2, -0.2};
  std::size_t at = 0;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const double time = (static_cast<double>(token) + 0.5) / static_cast<double>(tokens) - 0.5;
    const double centre = start + kSlopes[static_cast<std::size_t>(contour)] * time;
    for (std::int64_t band = 0; band < width; ++band) {
      const double away = (static_cast<double>(band) + 0.5) / static_cast<double>(width) - centre;
      const double energy = amplitude * std::exp(-away * away / 0.01);
      frames[at++] = static_cast<float>(energy + random.Normal(0.0, kNoise));
    }
  }
  return {kFirstLoudness + loudness, kFirstPitch + pitch, kFirstContour + contour};
}

}  // namespace isthmus::backend::internal
