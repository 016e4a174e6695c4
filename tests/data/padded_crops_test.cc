#include "data/padded_crops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace sluice {
namespace {

constexpr std::int64_t kSide = 6;
constexpr std::int64_t kPadded = 2;

// Two channels whose pixels tell their image, their channel and their place; none is 0.
std::shared_ptr<const DataSet> some_images(std::int64_t images) {
  auto set = std::make_shared<DataSet>();
  set->sample_shape = {2, kSide, kSide};
  set->classes = 3;
  for (std::int64_t i = 0; i < images; ++i) {
    set->labels.push_back(i % 3);
    for (std::int64_t pixel = 0; pixel < 2 * kSide * kSide; ++pixel) {
      set->features.push_back(static_cast<float>(1 + i * 1000 + pixel));
    }
  }
  return set;
}

// Where the crop of an image began and whether it is mirrored, by comparison with all crops.
using Found = std::tuple<std::int64_t, std::int64_t, bool>;
std::set<Found> explanations(std::span<const float> original, std::span<const float> varied) {
  std::set<Found> found;
  for (std::int64_t down = -kPadded; down <= kPadded; ++down) {
    for (std::int64_t right = -kPadded; right <= kPadded; ++right) {
      for (const bool mirrored : {false, true}) {
        bool same = true;
        for (std::int64_t at = 0; at < 2 * kSide * kSide; ++at) {
          const std::int64_t channel = at / (kSide * kSide);
          const std::int64_t y = at / kSide % kSide + down;
          const std::int64_t column = at % kSide;
          const std::int64_t x = (mirrored ? kSide - 1 - column : column) + right;
          const bool inside = y >= 0 && y < kSide && x >= 0 && x < kSide;
          const auto from = static_cast<std::size_t>((channel * kSide + y) * kSide + x);
          same = same && varied[static_cast<std::size_t>(at)] == (inside ? original[from] : 0.0F);
        }
        if (same) {
          found.insert({down, right, mirrored});
        }
      }
    }
  }
  return found;
}

TEST(PaddedCropsTest, EveryImageIsACropOfItself) {
  const auto images = some_images(400);
  const PaddedCrops crops(images, kPadded);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < images->size(); ++i) {
    indices.push_back(images->size() - 1 - i);
  }
  Batch batch;
  crops.load(indices, 7, batch);
  EXPECT_EQ(batch.shape, (std::vector<std::int64_t>{400, 2, kSide, kSide}));
  std::set<Found> seen;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    EXPECT_EQ(batch.labels[i], indices[i] % 3);
    const auto size = static_cast<std::size_t>(images->sample_size());
    const auto found =
        explanations(images->sample(indices[i]), std::span(batch.features).subspan(i * size, size));
    ASSERT_EQ(found.size(), 1U) << "image " << indices[i];
    seen.insert(*found.begin());
  }
  EXPECT_EQ(seen.size(), 50U) << "all 5 x 5 places, mirrored and not";
}

TEST(PaddedCropsTest, DependsOnTheSeedAndTheImageAlone) {
  const PaddedCrops crops(some_images(8));
  const auto load = [&](const std::vector<std::int64_t>& indices, std::uint64_t seed) {
    Batch batch;
    crops.load(indices, seed, batch);
    return batch.features;
  };
  const auto alone = load({5}, 1);
  const auto among = load({2, 5}, 1);
  EXPECT_EQ(alone, std::vector<float>(among.begin() + 2 * kSide * kSide, among.end()));
  EXPECT_NE(load({0, 1, 2, 3}, 1), load({0, 1, 2, 3}, 2));
}

TEST(PaddedCropsTest, WithoutPaddingItOnlyMirrors) {
  const auto images = some_images(20);
  const PaddedCrops crops(images, 0);
  Batch batch;
  bool mirrored = false;
  for (std::int64_t i = 0; i < 20; ++i) {
    crops.load(std::vector<std::int64_t>{i}, 3, batch);
    const auto found = explanations(images->sample(i), batch.features);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(std::get<0>(*found.begin()), 0);
    EXPECT_EQ(std::get<1>(*found.begin()), 0);
    mirrored = mirrored || std::get<2>(*found.begin());
  }
  EXPECT_TRUE(mirrored);
}

}  // namespace
}  // namespace sluice
