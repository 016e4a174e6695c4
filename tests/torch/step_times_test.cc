#include "torch/step_times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace sluice {
namespace {

// The test sets the time between each mark and the one before it.
class PlannedClock final : public DeviceClock {
 public:
  explicit PlannedClock(std::vector<double> gaps) : gaps_(std::move(gaps)) {}

  void mark() override {
    now_ += marks_.empty() ? 0 : gaps_.at(marks_.size() - 1);
    marks_.push_back(now_);
  }
  std::vector<double> collect() override { return std::exchange(marks_, {}); }

 private:
  std::vector<double> gaps_;
  double now_ = 0;
  std::vector<double> marks_;
};

TEST(StepTimesTest, ALayerLastsUntilTheNext) {
  // begin, read 0, read 1, forward done, final 1, final 0, end
  PlannedClock clock({1, 2, 4, 8, 16, 32});
  StepTimes times(clock, 2);
  times.begin();
  EXPECT_TRUE(times.before_layer(LayerId(0)));
  times.before_layer(LayerId(1));
  times.forward_done();
  times.gradient_ready(LayerId(1));
  times.gradient_ready(LayerId(0));
  const std::vector<LayerTime> layers = times.end();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].forward, 1 + 2);
  EXPECT_EQ(layers[1].forward, 4);
  EXPECT_EQ(layers[1].backward, 8);
  EXPECT_EQ(layers[0].backward, 16 + 32);
}

TEST(StepTimesTest, AGradientThatOvertakesTakesNoTime) {
  PlannedClock clock({0, 0, 0, 0, 1, 2, 4, 0});
  StepTimes times(clock, 3);
  times.begin();
  for (const std::size_t layer : {0, 1, 2}) {
    times.before_layer(LayerId(layer));
  }
  times.forward_done();
  for (const std::size_t layer : {1, 2, 0}) {
    times.gradient_ready(LayerId(layer));
  }
  const std::vector<LayerTime> layers = times.end();
  EXPECT_EQ(layers[2].backward, 1 + 2);
  EXPECT_EQ(layers[1].backward, 0);
  EXPECT_EQ(layers[0].backward, 4);
}

// In any order in which layers are read and gradients become final.
RC_GTEST_PROP(StepTimesProperty, NothingOfAStepIsLost, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  const auto whole = *rc::gen::container<std::vector<int>>(2 * count + 2, rc::gen::inRange(0, 99));
  const std::vector<double> gaps(whole.begin(), whole.end());
  std::vector<std::size_t> layers(count);
  std::iota(layers.begin(), layers.end(), std::size_t{0});
  const auto shuffled = [&] {
    std::vector<std::size_t> order = layers;
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
    }
    return order;
  };
  PlannedClock clock(gaps);
  StepTimes times(clock, count);
  times.begin();
  for (const std::size_t layer : shuffled()) {
    times.before_layer(LayerId(layer));
  }
  times.forward_done();
  for (const std::size_t layer : shuffled()) {
    times.gradient_ready(LayerId(layer));
  }
  double sum = 0;
  for (const auto& [forward, backward] : times.end()) {
    RC_ASSERT(forward >= 0);
    RC_ASSERT(backward >= 0);
    sum += forward + backward;
  }
  RC_ASSERT(sum == std::accumulate(gaps.begin(), gaps.end(), 0.0));
}

}  // namespace
}  // namespace sluice
