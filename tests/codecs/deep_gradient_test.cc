#include "codecs/deep_gradient.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "codecs/sparse.h"
#include "codecs/values.h"

namespace sluice {
namespace {

using testing::Flavour;
using testing::values_of;

// The options, and what a run gives beside them.
struct RunOptions : DeepGradientOptions {
  float momentum = 0.9F;
  std::size_t workers = 1;

  // Of a model of one layer.
  DeepGradient codec(std::size_t parameters) const {
    return codec(std::vector<Range>{whole(parameters)});
  }
  DeepGradient codec(std::vector<Range> layers) const {
    return {*this, {.senders = workers, .momentum = momentum}, std::move(layers)};
  }
  static Range whole(std::size_t parameters) { return {0, static_cast<std::int64_t>(parameters)}; }
};

RunOptions any_options() {
  RunOptions options;
  options.epoch_iterations = 1;
  options.accumulation = *rc::gen::arbitrary<bool>();
  options.momentum_correction = *rc::gen::arbitrary<bool>();
  options.clipping = *rc::gen::arbitrary<bool>();
  options.factor_masking = *rc::gen::arbitrary<bool>();
  options.warm_up = *rc::gen::arbitrary<bool>();
  options.sparsity = *rc::gen::element(0.0, 0.5, 0.9, 0.999);
  options.momentum = *rc::gen::element(0.0F, 0.5F, 0.9F);
  options.clip_norm = *rc::gen::element(0.5, 5.0, 1000.0);
  options.workers = *rc::gen::inRange<std::size_t>(1, 9);
  return options;
}

RunOptions all_off() {
  RunOptions options;
  options.accumulation = false;
  options.momentum_correction = false;
  options.clipping = false;
  options.factor_masking = false;
  options.warm_up = false;
  return options;
}

std::vector<float> dense_of(std::span<const std::byte> bytes, std::size_t length) {
  std::vector<float> dense(length);
  SparseView::parse(bytes, static_cast<std::int64_t>(length))->add_to(dense, 1);
  return dense;
}

std::vector<std::byte> encode(DeepGradient& codec, const std::vector<float>& gradient,
                              Iteration iteration) {
  return codec.encode(gradient, {}, RunOptions::whole(gradient.size()), iteration);
}

// The paper's algorithm in double precision, told which entries were sent. Its gradient is divided
// by the number of workers from the start; here the update does that, so thresholds are times that.
struct Reference {
  Reference(const RunOptions& o, std::size_t count)
      : options(o), velocity(count), residual(count), lost(count), sent(count), produced(count) {}

  void take_in(const std::vector<float>& gradient) {
    double squares = 0;
    for (const double g : gradient) {
      squares += g * g;
    }
    const auto n = static_cast<double>(options.workers);
    const double limit = options.clip_norm / std::sqrt(n);
    const double norm = std::sqrt(squares) / n;
    const double factor = options.clipping && norm > limit ? limit / norm : 1;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double before = options.momentum_correction ? options.momentum * velocity[i] : 0;
      velocity[i] = before + factor * gradient[i];
      if (!options.accumulation) {
        lost[i] += residual[i];
        residual[i] = 0;
      }
      residual[i] += velocity[i];
      produced[i] += velocity[i];
    }
  }

  void send(const SparseView& view) {
    for (std::size_t e = 0; e < view.entries(); ++e) {
      const std::size_t i = view.position(e);
      sent[i] += static_cast<double>(view.value(e));
      residual[i] = 0;
      if (options.factor_masking) {
        velocity[i] = 0;
      }
    }
  }

  RunOptions options;
  std::vector<double> velocity;
  std::vector<double> residual;
  std::vector<double> lost;  // without accumulation
  std::vector<double> sent;
  std::vector<double> produced;
};

constexpr double kRounding = 1e-4;

// The entries of `view` have their values of `held`, and no other is larger than the least of them.
void assert_largest(const SparseView& view, const std::vector<double>& held) {
  std::vector<bool> is_sent(held.size());
  double min = std::numeric_limits<double>::infinity();
  for (std::size_t e = 0; e < view.entries(); ++e) {
    const double value = held[view.position(e)];
    RC_ASSERT(std::fabs(static_cast<double>(view.value(e)) - value) < kRounding);
    is_sent[view.position(e)] = true;
    min = std::min(min, std::fabs(value));
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    RC_ASSERT(is_sent[i] || std::fabs(held[i]) < min + kRounding);
  }
}

RC_GTEST_PROP(DeepGradientProperties, IsThePapersAlgorithmAndLosesNothing, ()) {
  const auto options = any_options();
  const auto count = *rc::gen::inRange<std::size_t>(1, 2000);
  const auto iterations = *rc::gen::inRange<std::int64_t>(1, 12);
  DeepGradient codec = options.codec(count);
  Reference reference(options, count);
  for (std::int64_t t = 0; t < iterations; ++t) {
    const auto gradient = values_of(Flavour::kSmooth, count, static_cast<std::uint64_t>(t));
    const auto bytes = encode(codec, gradient, t + 1);
    const auto view = SparseView::parse(bytes, static_cast<std::int64_t>(count));
    RC_ASSERT(static_cast<bool>(view));
    RC_ASSERT(view->entries() == options.entries(count, t + 1));
    reference.take_in(gradient);
    assert_largest(*view, reference.residual);
    reference.send(*view);
  }
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(std::fabs(reference.sent[i] + static_cast<double>(codec.residual()[i]) +
                        reference.lost[i] - reference.produced[i]) < kRounding);
    RC_ASSERT(!options.accumulation || reference.lost[i] == 0);
  }
}

RC_GTEST_PROP(DeepGradientProperties, WithoutSparsityAndMomentumIsTheGradient, ()) {
  RunOptions options = any_options();
  options.momentum_correction = false;
  options.clipping = false;
  options.sparsity = 0;
  const auto count = *rc::gen::inRange<std::size_t>(0, 500);
  DeepGradient codec = options.codec(count);
  for (std::uint64_t t = 0; t < 3; ++t) {
    const auto gradient = values_of(Flavour::kWide, count, t);
    RC_ASSERT(dense_of(encode(codec, gradient, 1), count) == gradient);
  }
}

// Layers have nothing to do with each other: a model in two is two models.
RC_GTEST_PROP(DeepGradientProperties, KeepsLayersApart, ()) {
  const auto options = any_options();
  const auto first = *rc::gen::inRange<std::size_t>(1, 300);
  const auto second = *rc::gen::inRange<std::size_t>(1, 300);
  const Range head{0, static_cast<std::int64_t>(first)};
  const Range tail{head.end, head.end + static_cast<std::int64_t>(second)};
  DeepGradient both = options.codec({head, tail});
  DeepGradient a = options.codec(first);
  DeepGradient b = options.codec(second);
  for (Iteration t = 1; t < 5; ++t) {
    const auto gradient =
        values_of(Flavour::kSmooth, first + second, static_cast<std::uint64_t>(t));
    const auto cut = gradient.begin() + static_cast<std::ptrdiff_t>(first);
    RC_ASSERT(both.encode(gradient, {}, tail, t) == encode(b, {cut, gradient.end()}, t));
    RC_ASSERT(both.encode(gradient, {}, head, t) == encode(a, {gradient.begin(), cut}, t));
  }
}

// Where layers are cut, or merged into one chunk, makes no difference to what is clipped.
RC_GTEST_PROP(DeepGradientProperties, ClipsALayerAsAWholeHoweverItIsCut, ()) {
  RunOptions options = any_options();
  options.clipping = true;
  options.clip_norm = 0.01;
  options.sparsity = 0;
  const auto first = *rc::gen::inRange<std::int64_t>(0, 300);
  const auto second = *rc::gen::inRange<std::int64_t>(1, 300);
  const std::vector<Range> layers{{0, first}, {first, first + second}};
  DeepGradient by_layer = options.codec(layers);
  DeepGradient merged = options.codec(layers);
  DeepGradient cut = options.codec(layers);
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto size = static_cast<std::size_t>(first + second);
  for (Iteration t = 1; t < 4; ++t) {
    const auto gradient = values_of(Flavour::kSmooth, size, static_cast<std::uint64_t>(t));
    std::vector<float> whole;
    std::vector<float> sent;
    for (const Range& layer : layers) {
      const auto bytes = by_layer.encode(gradient, {}, layer, t);
      const auto dense = dense_of(bytes, static_cast<std::size_t>(layer.size()));
      whole.insert(whole.end(), dense.begin(), dense.end());
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = part_of(layer, parts, i);
        const auto fragment =
            dense_of(cut.encode(gradient, {}, part, t), static_cast<std::size_t>(part.size()));
        sent.insert(sent.end(), fragment.begin(), fragment.end());
      }
    }
    RC_ASSERT(sent == whole);
    RC_ASSERT(dense_of(encode(merged, gradient, t), size) == whole);
  }
}

TEST(DeepGradientTest, ClipsTheNormToTheWorkersShare) {
  RunOptions options = all_off();
  options.clipping = true;
  options.clip_norm = 2.5;
  options.workers = 4;
  options.sparsity = 0;
  DeepGradient codec = options.codec(2);
  // A fourth of it has the norm 2.5 / sqrt(4).
  const std::vector<float> largest{3.0F, -4.0F};
  EXPECT_EQ(dense_of(encode(codec, largest, 1), 2), largest);
  EXPECT_EQ(dense_of(encode(codec, {30.0F, -40.0F}, 2), 2), largest);
  // Two senders for two workers each: a fourth of the sum has the norm 2.5 / sqrt(2).
  DeepGradient for_two(options, {.senders = 2, .group = 2}, {{0, 2}});
  const auto clipped = dense_of(encode(for_two, {30.0F, -40.0F}, 1), 2);
  EXPECT_FLOAT_EQ(std::hypot(clipped[0], clipped[1]) / 4, 2.5F / std::sqrt(2.0F));
}

TEST(DeepGradientTest, TheDecayIsThatOfAllWorkersOfTheGroupAndNotClipped) {
  RunOptions options = all_off();
  options.clipping = true;
  options.clip_norm = 1;
  options.sparsity = 0;
  DeepGradient codec(options, {.senders = 1, .group = 3, .weight_decay = 0.5F}, {{0, 1}});
  const std::vector<float> weights{10.0F};
  EXPECT_EQ(dense_of(codec.encode(std::vector{100.0F}, weights, {0, 1}, 1), 1),
            std::vector{3.0F + 15.0F});
}

TEST(DeepGradientTest, ClippingLetsADivergenceThrough) {
  RunOptions options = all_off();
  options.clipping = true;
  options.sparsity = 0.5;
  DeepGradient codec = options.codec(2);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(dense_of(encode(codec, {100.0F, inf}, 1), 2), (std::vector{0.0F, inf}));
}

TEST(DeepGradientTest, MaskingStopsTheVelocityOfWhatWasSent) {
  for (const bool masks : {false, true}) {
    RunOptions options = all_off();
    options.momentum_correction = true;
    options.momentum = 0.5F;
    options.factor_masking = masks;
    options.sparsity = 0;
    DeepGradient codec = options.codec(1);
    EXPECT_EQ(dense_of(encode(codec, {8.0F}, 1), 1), std::vector{8.0F});
    EXPECT_EQ(dense_of(encode(codec, {0.0F}, 2), 1), std::vector{masks ? 0.0F : 4.0F});
  }
}

TEST(DeepGradientTest, WarmsUpOverFourEpochs) {
  DeepGradientOptions options;
  EXPECT_EQ(options.sparsity_at(1), 0.999) << "without epochs the warm-up is over";
  options.epoch_iterations = 10;
  EXPECT_EQ(options.sparsity_at(1), 0.75);
  EXPECT_EQ(options.sparsity_at(11), 0.9375);
  EXPECT_EQ(options.sparsity_at(21), 0.984375);
  EXPECT_EQ(options.sparsity_at(31), 0.996);
  EXPECT_EQ(options.sparsity_at(41), 0.999);
  EXPECT_EQ(options.sparsity_at(1001), 0.999);
  EXPECT_EQ(options.entries(1'000'000, 1), 250'000U);
  EXPECT_EQ(options.entries(1'000'000, 41), 1'000U);
  EXPECT_EQ(options.entries(10, 41), 1U);
  EXPECT_EQ(options.entries(0, 41), 0U);
  options.sparsity = 0.9;
  EXPECT_EQ(options.sparsity_at(1), 0.75);
  EXPECT_EQ(options.sparsity_at(11), 0.9);
  options.warm_up = false;
  EXPECT_EQ(options.sparsity_at(1), 0.9);
}

TEST(DeepGradientTest, RefusesAChunkOutsideTheModel) {
  DeepGradient codec({}, {}, {{0, 10}});
  EXPECT_THROW(codec.encode(std::vector<float>(10), {}, {6, 11}, 1), InvariantError);
  EXPECT_THROW(codec.encode(std::vector<float>(9), {}, {6, 9}, 1), InvariantError);
}

}  // namespace
}  // namespace sluice
