#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "data/images/image.h"
#include "data/preparation.h"

namespace sluice {

// The part of an image that a network sees, in pixels.
struct View {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  bool mirrored = false;
};

// The output format: three planes (red, green, blue), or one of grey.
struct Raster {
  std::size_t channels = 3;
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t size() const { return channels * rows * columns; }
};

// For evaluation: the middle, seven eighths of the largest view with the raster's proportions.
View centre_view(const Image& image, const Raster& raster);
// For training: 8 to 100 % of the area at a random place, stretched by at most 4/3, maybe mirrored.
View random_view(const Image& image, const Raster& raster, Random& random);

// The standardisation that append_view() applies.
Preparation standardisation_of(const Raster& raster);

// Appends the view, resized with a filter as wide as the pixels it makes, and standardised with
// ImageNet's mean and standard deviation.
void append_view(const Image& image, const View& view, const Raster& raster,
                 std::vector<float>& values);

}  // namespace sluice
