#include "data/images/view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace sluice {
namespace {

constexpr double kCentre = 7.0 / 8;
constexpr double kSmallestArea = 0.08;
constexpr double kMaxElongation = 4.0 / 3;
constexpr int kTries = 10;

using Colour = std::array<float, 3>;
constexpr Colour kMean{0.485F, 0.456F, 0.406F};
constexpr Colour kDeviation{0.229F, 0.224F, 0.225F};
constexpr Colour kBrightness{0.299F, 0.587F, 0.114F};

// The weights of the `each` pixels from begin[i] on in value i of a row or column.
struct Taps {
  std::size_t each = 0;
  std::vector<std::size_t> begin;
  std::vector<float> weights;

  std::span<const float> of(std::size_t i) const {
    return std::span(weights).subspan(i * each, each);
  }
};

// Resizes the part of a line of `pixels` that begins at `from` and has this length to `values`.
Taps make_taps(double from, double length, std::size_t values, std::size_t pixels) {
  const double step = length / static_cast<double>(values);
  const double reach = std::max(step, 1.0);
  Taps taps;
  taps.each = std::min(pixels, static_cast<std::size_t>(std::ceil(2 * reach)) + 1);
  for (std::size_t i = 0; i < values; ++i) {
    const double centre = from + (static_cast<double>(i) + 0.5) * step;
    const double first =
        std::clamp(std::floor(centre - reach), 0.0, static_cast<double>(pixels - taps.each));
    taps.begin.push_back(static_cast<std::size_t>(first));
    double sum = 0;
    std::vector<double> weights(taps.each);
    for (std::size_t t = 0; t < taps.each; ++t) {
      const double distance = std::abs(first + static_cast<double>(t) + 0.5 - centre);
      weights[t] = std::max(0.0, 1 - distance / reach);
      sum += weights[t];
    }
    for (const double weight : weights) {
      taps.weights.push_back(static_cast<float>(weight / sum));
    }
  }
  return taps;
}

// Resizes a row of the image to one pixel per tap.
void resize_row(const std::uint8_t* row, const Taps& taps, Colour* out) {
  for (std::size_t i = 0; i < taps.begin.size(); ++i) {
    const std::uint8_t* pixel = row + taps.begin[i] * 3;
    Colour sum{};
    for (const float weight : taps.of(i)) {
      for (std::size_t c = 0; c < 3; ++c) {
        sum[c] += weight * static_cast<float>(*pixel++);
      }
    }
    out[i] = sum;
  }
}

class Canvas {
 public:
  Canvas(const Raster& raster, std::vector<float>& values)
      : raster_(raster), begin_(values.size()), values_(values) {
    values.resize(begin_ + raster.size());
  }

  // Colours range from 0 to 255.
  void put(std::size_t row, std::size_t column, const Colour& colour) {
    float grey = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const float value = (colour[c] / 255 - kMean[c]) / kDeviation[c];
      grey += value * kBrightness[c];
      if (raster_.channels == 3) {
        at(c, row, column) = value;
      }
    }
    if (raster_.channels == 1) {
      at(0, row, column) = grey;
    }
  }

 private:
  float& at(std::size_t channel, std::size_t row, std::size_t column) {
    return values_[begin_ + (channel * raster_.rows + row) * raster_.columns + column];
  }

  Raster raster_;
  std::size_t begin_;
  std::vector<float>& values_;
};

// The middle of the image: the given share of the largest view with the raster's proportions.
View middle(const Image& image, const Raster& raster, double share) {
  const double proportion = static_cast<double>(raster.columns) / static_cast<double>(raster.rows);
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  View view;
  view.width = std::min(width, height * proportion) * share;
  view.height = view.width / proportion;
  view.left = (width - view.width) / 2;
  view.top = (height - view.height) / 2;
  return view;
}

}  // namespace

View centre_view(const Image& image, const Raster& raster) {
  return middle(image, raster, kCentre);
}

View random_view(const Image& image, const Raster& raster, Random& random) {
  const double proportion = static_cast<double>(raster.columns) / static_cast<double>(raster.rows);
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  View view = middle(image, raster, 1);
  for (int i = 0; i < kTries; ++i) {
    const double area = width * height * (kSmallestArea + (1 - kSmallestArea) * random.uniform());
    // No logarithm and no power: their last bits differ between machines.
    const double elongation = 1 + (kMaxElongation - 1) * random.uniform();
    const double shape = proportion * (random.below(2) == 0 ? elongation : 1 / elongation);
    const double wide = std::sqrt(area * shape);
    const double high = wide / shape;
    if (wide <= width && high <= height) {
      view = {.left = (width - wide) * random.uniform(),
              .top = (height - high) * random.uniform(),
              .width = wide,
              .height = high};
      break;
    }
  }
  view.mirrored = random.below(2) == 0;
  return view;
}

Preparation standardisation_of(const Raster& raster) {
  Preparation preparation;
  for (std::size_t c = 0; c < 3; ++c) {
    preparation.mean.push_back(255.0 * kMean[c]);
    preparation.deviation.push_back(255.0 * kDeviation[c]);
  }
  if (raster.channels == 1) {
    preparation.grey_weights.assign(kBrightness.begin(), kBrightness.end());
  }
  return preparation;
}

void append_view(const Image& image, const View& view, const Raster& raster,
                 std::vector<float>& values) {
  const Taps across = make_taps(view.left, view.width, raster.columns, image.width);
  const Taps down = make_taps(view.top, view.height, raster.rows, image.height);
  const std::size_t top = down.begin.front();
  const std::size_t rows = down.begin.back() + down.each - top;
  std::vector<Colour> narrow(rows * raster.columns);
  for (std::size_t y = 0; y < rows; ++y) {
    resize_row(image.pixels.data() + (top + y) * image.width * 3, across,
               narrow.data() + y * raster.columns);
  }
  Canvas canvas(raster, values);
  for (std::size_t y = 0; y < raster.rows; ++y) {
    for (std::size_t x = 0; x < raster.columns; ++x) {
      const Colour* pixel = narrow.data() + (down.begin[y] - top) * raster.columns + x;
      Colour sum{};
      for (const float weight : down.of(y)) {
        for (std::size_t c = 0; c < 3; ++c) {
          sum[c] += weight * (*pixel)[c];
        }
        pixel += raster.columns;
      }
      canvas.put(y, view.mirrored ? raster.columns - 1 - x : x, sum);
    }
  }
}

}  // namespace sluice
