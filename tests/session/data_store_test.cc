#include "session/data_store.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TaskSpec made_up(std::uint64_t seed) {
  TaskSpec spec;
  spec.model = "net.pt";
  spec.seed = seed;
  spec.data.kind = DataKind::kSynthetic;
  spec.data.input_shape = {2};
  spec.data.samples = 20;
  return spec;
}

TEST(DataStore, ReadsTheSameDataOnce) {
  DataStore store;
  const auto first = store.read(made_up(1), {});
  TaskSpec other = made_up(1);
  other.batch = 7;
  const auto again = store.read(other, {});
  const auto of_another_seed = store.read(made_up(2), {});
  ASSERT_TRUE(first && again && of_another_seed);
  EXPECT_EQ(again->train, first->train);
  EXPECT_NE(of_another_seed->train, first->train);
  other.data.samples = 30;
  EXPECT_EQ(store.read(other, {})->train->size(), 30);
}

}  // namespace
}  // namespace sluice
