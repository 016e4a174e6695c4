#include "data/batch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/synthetic.h"

namespace sluice {
namespace {

using testing::ElementsAre;

// Records the requests.
class Noted final : public Samples {
 public:
  SampleForm form() const override { return {{1}, 10}; }
  std::int64_t size() const override { return 7; }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override {
    batch.labels.assign(indices.begin(), indices.end());
    batch.words = {static_cast<std::int64_t>(augmentation_seed)};
  }
};

TEST(BatchStreamTest, AWorkerGetsItsShare) {
  const Sharding sharding{5, 7, 2, 2};
  const BatchSequence batches = batches_of(std::make_shared<Noted>(), sharding, 1);
  for (Iteration t = 0; t < 6; ++t) {
    Batch batch;
    batches.load(t, batch);
    EXPECT_EQ(batch.labels, sharding.batch_of(1, t));
    EXPECT_EQ(static_cast<std::uint64_t>(batch.words.front()), sharding.augmentation_seed_of(t));
  }
}

TEST(BatchStreamTest, InOrderEverySampleComesOnce) {
  const BatchSequence batches = batches_in_order(std::make_shared<Noted>(), 3);
  ASSERT_EQ(batches.size, 3);
  const auto stream = DirectLoader().open(batches);
  EXPECT_THAT(stream->get(0).labels, ElementsAre(0, 1, 2));
  EXPECT_THAT(stream->get(1).labels, ElementsAre(3, 4, 5));
  EXPECT_THAT(stream->get(2).labels, ElementsAre(6));
  EXPECT_THAT(stream->get(0).labels, ElementsAre(0, 1, 2));
}

TEST(BatchStreamTest, TheSameBatchIsLoadedOnce) {
  int loads = 0;
  const auto stream = DirectLoader().open({[&](std::int64_t, Batch&) { ++loads; }});
  stream->get(4);
  stream->get(4);
  EXPECT_EQ(loads, 1);
  stream->get(5);
  stream->get(4);
  EXPECT_EQ(loads, 3);
}

}  // namespace
}  // namespace sluice
