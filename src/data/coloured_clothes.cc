#include "data/coloured_clothes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kMargin = 2;
constexpr std::int64_t kPaddedSide = kSide + 2 * kMargin;
constexpr std::size_t kColours = 10;
using Colour = std::array<float, 3>;
constexpr std::array<Colour, kColours> kPalette{{{1.0F, 1.0F, 1.0F},
                                                 {1.0F, 0.2F, 0.2F},
                                                 {0.2F, 1.0F, 0.2F},
                                                 {0.2F, 0.2F, 1.0F},
                                                 {1.0F, 1.0F, 0.2F},
                                                 {1.0F, 0.2F, 1.0F},
                                                 {0.2F, 1.0F, 1.0F},
                                                 {1.0F, 0.6F, 0.2F},
                                                 {0.6F, 0.3F, 1.0F},
                                                 {0.5F, 0.5F, 0.5F}}};

DataSet coloured(const DataSet& clothes, std::uint64_t stream) {
  check(clothes.sample_size() == kSide * kSide, "Fashion-MNIST has images of 28 x 28");
  const float black = *std::ranges::min_element(clothes.features);
  DataSet set;
  set.sample_shape = {3, kPaddedSide, kPaddedSide};
  set.classes = clothes.classes * static_cast<std::int64_t>(kColours);
  set.features.assign(static_cast<std::size_t>(clothes.size() * set.sample_size()), 0.0F);
  auto* pixel = set.features.data();
  for (std::int64_t s = 0; s < clothes.size(); ++s) {
    const std::uint64_t colour = Random(stream, static_cast<std::uint64_t>(s)).below(kColours);
    const std::span<const float> grey = clothes.sample(s);
    for (const float channel : kPalette[colour]) {
      for (std::int64_t row = 0; row < kSide; ++row) {
        for (std::int64_t column = 0; column < kSide; ++column) {
          pixel[(row + kMargin) * kPaddedSide + column + kMargin] =
              (grey[static_cast<std::size_t>(row * kSide + column)] - black) * channel;
        }
      }
      pixel += kPaddedSide * kPaddedSide;
    }
    set.labels.push_back(clothes.labels[static_cast<std::size_t>(s)] *
                             static_cast<std::int64_t>(kColours) +
                         static_cast<std::int64_t>(colour));
  }
  return set;
}

}  // namespace

DataSplit coloured(const DataSplit& clothes) {
  DataSplit split{.train = coloured(clothes.train, 1), .test = coloured(clothes.test, 2)};
  standardise(split);
  return split;
}

}  // namespace sluice
