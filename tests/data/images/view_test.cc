#include "data/images/view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace sluice {
namespace {

constexpr std::array<float, 3> kMean{0.485F, 0.456F, 0.406F};
constexpr std::array<float, 3> kDeviation{0.229F, 0.224F, 0.225F};

float standardised(double value, std::size_t channel) {
  return (static_cast<float>(value) / 255 - kMean[channel]) / kDeviation[channel];
}

// Red rises by `right` from column to column, green by `down` from row to row, blue is `blue`.
Image ramp(std::size_t width, std::size_t height, int right, int down, int blue) {
  Image image{width, height, {}};
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(static_cast<int>(x) * right));
      image.pixels.push_back(static_cast<std::uint8_t>(static_cast<int>(y) * down));
      image.pixels.push_back(static_cast<std::uint8_t>(blue));
    }
  }
  return image;
}

std::vector<float> seen(const Image& image, const View& view, const Raster& raster) {
  std::vector<float> values{42};  // of another sample
  append_view(image, view, raster, values);
  EXPECT_EQ(values.size(), 1 + raster.size());
  EXPECT_EQ(values.front(), 42);
  return {values.begin() + 1, values.end()};
}

View whole(const Image& image) {
  return {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
}

TEST(ViewTest, InItsOwnSizeAnImageStaysAsItIs) {
  const Image image = ramp(4, 3, 50, 60, 9);
  for (const bool mirrored : {false, true}) {
    View view = whole(image);
    view.mirrored = mirrored;
    const auto values = seen(image, view, {3, 3, 4});
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        const auto from = static_cast<double>(mirrored ? 3 - x : x);
        EXPECT_FLOAT_EQ(values[y * 4 + x], standardised(50 * from, 0));
        EXPECT_FLOAT_EQ(values[12 + y * 4 + x], standardised(60.0 * static_cast<double>(y), 1));
        EXPECT_FLOAT_EQ(values[24 + y * 4 + x], standardised(9, 2));
      }
    }
  }
}

// Away from the edges a ramp stays a ramp at any size.
RC_GTEST_PROP(ViewTest, ARampStaysARamp, ()) {
  const Image image = ramp(60, 50, 4, 5, 100);
  const View view{.left = 10 + *rc::gen::inRange(0, 100) / 10.0,
                  .top = 10 + *rc::gen::inRange(0, 100) / 10.0,
                  .width = *rc::gen::inRange(50, 300) / 10.0,
                  .height = *rc::gen::inRange(50, 200) / 10.0};
  const Raster raster{3, *rc::gen::inRange<std::size_t>(6, 30),
                      *rc::gen::inRange<std::size_t>(6, 30)};
  const auto values = seen(image, view, raster);
  const std::size_t plane = raster.rows * raster.columns;
  for (std::size_t y = 0; y < raster.rows; ++y) {
    for (std::size_t x = 0; x < raster.columns; ++x) {
      const double column = view.left + (static_cast<double>(x) + 0.5) * view.width /
                                            static_cast<double>(raster.columns);
      const double row = view.top + (static_cast<double>(y) + 0.5) * view.height /
                                        static_cast<double>(raster.rows);
      // A triangle sampled at whole pixels is slightly off its centre.
      RC_ASSERT(std::abs(values[y * raster.columns + x] - standardised(4 * (column - 0.5), 0)) <
                0.02);
      RC_ASSERT(std::abs(values[plane + y * raster.columns + x] -
                         standardised(5 * (row - 0.5), 1)) < 0.02);
      RC_ASSERT(std::abs(values[2 * plane + y * raster.columns + x] - standardised(100, 2)) < 1e-5);
    }
  }
}

TEST(ViewTest, GreyIsTheBrightness) {
  const Image image{1, 1, {10, 200, 50}};
  const auto values = seen(image, whole(image), {1, 2, 2});
  for (const float value : values) {
    EXPECT_NEAR(
        value,
        0.299F * standardised(10, 0) + 0.587F * standardised(200, 1) + 0.114F * standardised(50, 2),
        1e-5);
  }
}

// Resize(256) and CenterCrop(224) of 224 pixels: the middle 7/8 of the shorter side.
TEST(ViewTest, TheCentreIsSevenEighths) {
  const View view = centre_view(Image{640, 480, {}}, {3, 224, 224});
  EXPECT_DOUBLE_EQ(view.width, 420);
  EXPECT_DOUBLE_EQ(view.height, 420);
  EXPECT_DOUBLE_EQ(view.left, 110);
  EXPECT_DOUBLE_EQ(view.top, 30);
  EXPECT_FALSE(view.mirrored);
}

RC_GTEST_PROP(ViewTest, ARandomViewIsPartOfTheImage, ()) {
  const Image image{
      *rc::gen::inRange<std::size_t>(1, 800), *rc::gen::inRange<std::size_t>(1, 800), {}};
  const Raster raster{3, *rc::gen::inRange<std::size_t>(1, 300),
                      *rc::gen::inRange<std::size_t>(1, 300)};
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const View view = random_view(image, raster, random);
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  const double slack = 1e-9 * (width + height);
  RC_ASSERT(view.left >= -slack);
  RC_ASSERT(view.top >= -slack);
  RC_ASSERT(view.left + view.width <= width + slack);
  RC_ASSERT(view.top + view.height <= height + slack);
  const double proportion = static_cast<double>(raster.columns) / static_cast<double>(raster.rows);
  const double phase = view.width / view.height / proportion;
  RC_ASSERT(phase < 4.0 / 3 + 1e-9);
  RC_ASSERT(phase > 3.0 / 4 - 1e-9);
}

TEST(ViewTest, RandomViewsUseAllTheirFreedom) {
  const Image image{100, 100, {}};
  const Raster raster{3, 10, 10};
  Random random(5);
  double smallest = 1;
  double largest = 0;
  int mirrored = 0;
  constexpr int kViews = 2000;
  for (int i = 0; i < kViews; ++i) {
    const View view = random_view(image, raster, random);
    const double area = view.width * view.height / 1e4;
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    mirrored += view.mirrored ? 1 : 0;
  }
  EXPECT_NEAR(smallest, 0.08, 0.01);
  EXPECT_NEAR(largest, 1, 0.05);
  EXPECT_NEAR(mirrored, kViews / 2, kViews / 20);
}

}  // namespace
}  // namespace sluice
