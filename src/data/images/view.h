#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "data/images/image.h"
#include "data/preparation.h"

namespace sluice {

// The part of an image that a network gets to see, in pixels.
struct View {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
  bool mirrored = false;
};

// What pixels become: `channels` planes, which are red, green and blue, or one of grey.
struct Raster {
  std::size_t channels = 3;
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t size() const { return channels * rows * columns; }
};

// For evaluation: the middle, seven eighths of what an image of this raster's proportions can have.
View centre_view(const Image& image, const Raster& raster);
// For training: 8 to 100 % of the area, stretched by at most 4/3, anywhere, mirrored or not.
View random_view(const Image& image, const Raster& raster, Random& random);

// What append_view() makes of colours.
Preparation standardisation_of(const Raster& raster);

// Appends the view, resized with a filter that is as wide as the pixels it makes, and standardised
// by the mean and the deviation of the images of ImageNet.
void append_view(const Image& image, const View& view, const Raster& raster,
                 std::vector<float>& values);

}  // namespace sluice
