#include "data/padded_crops.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

struct Plane {
  std::int64_t rows;
  std::int64_t columns;
};

struct Crop {
  std::int64_t down;   // by how much the cut begins below the image's first row; may be negative
  std::int64_t right;  // likewise beyond its first column
  bool mirrored;
};

void cut(std::span<const float> from, std::span<float> to, const Plane& plane, const Crop& crop) {
  const auto index = [&](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * plane.columns + column);
  };
  const auto inside = [](std::int64_t at, std::int64_t end) { return at >= 0 && at < end; };
  for (std::int64_t row = 0; row < plane.rows; ++row) {
    for (std::int64_t column = 0; column < plane.columns; ++column) {
      const std::int64_t y = row + crop.down;
      const std::int64_t x = (crop.mirrored ? plane.columns - 1 - column : column) + crop.right;
      const bool is_image = inside(y, plane.rows) && inside(x, plane.columns);
      to[index(row, column)] = is_image ? from[index(y, x)] : 0.0F;
    }
  }
}

}  // namespace

void PaddedCrops::load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                       Batch& batch) const {
  images_->load(indices, augmentation_seed, batch);
  check(batch.shape.size() == 4, "images have channels, rows and columns");
  const Plane plane{batch.shape[2], batch.shape[3]};
  const auto area = static_cast<std::size_t>(plane.rows * plane.columns);
  const auto channels = static_cast<std::size_t>(batch.shape[1]);
  std::vector<float> original(area);
  std::span<float> rest(batch.features);
  for (const std::int64_t index : indices) {
    Random random(augmentation_seed, static_cast<std::uint64_t>(index));
    const auto shift = [&] {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * padding_ + 1))) -
             padding_;
    };
    const Crop crop{.down = shift(), .right = shift(), .mirrored = random.below(2) == 1};
    for (std::size_t c = 0; c < channels; ++c) {
      const std::span<float> pixels = rest.first(area);
      std::ranges::copy(pixels, original.begin());
      cut(original, pixels, plane, crop);
      rest = rest.subspan(area);
    }
  }
}

}  // namespace sluice
