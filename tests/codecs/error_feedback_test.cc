#include "codecs/error_feedback.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codecs/values.h"

namespace sluice {
namespace {

RC_GTEST_PROP(ErrorFeedbackProperties, LosesNothingForGood, ()) {
  const auto format = *rc::gen::element(Codec::kTruncate16, Codec::kBf16, Codec::kQuantise8);
  const auto count = *rc::gen::inRange<std::size_t>(1, 300);
  const auto rounds = *rc::gen::inRange<std::size_t>(1, 20);
  const auto codec = make_dense_codec(format);
  std::vector<float> residual(count);
  const ErrorFeedback feedback(*codec, residual);
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(feedback.encoded_size(static_cast<std::int64_t>(count))));
  std::vector<float> received(count);
  std::vector<double> produced(count);
  std::vector<double> arrived(count);
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto values = testing::values_of(testing::Flavour::kSmooth, count, round);
    feedback.encode(values, bytes);
    feedback.decode(bytes, received);
    for (std::size_t i = 0; i < count; ++i) {
      produced[i] += static_cast<double>(values[i]);
      arrived[i] += static_cast<double>(received[i]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(std::fabs(arrived[i] + static_cast<double>(residual[i]) - produced[i]) < 1e-5);
    RC_ASSERT(std::fabs(residual[i]) < 0.02F);
  }
}

// Beside a large value a small one rounds to zero each time; its sum must come through.
TEST(ErrorFeedbackTest, SmallValuesArriveInTheEnd) {
  constexpr int kRounds = 1000;
  const std::vector<float> values{1.0F, 0.001F};
  const auto codec = make_dense_codec(Codec::kQuantise8);
  std::vector<float> residual(values.size());
  const ErrorFeedback feedback(*codec, residual);
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_size(2)));
  std::vector<float> plain(values.size());
  std::vector<float> fed_back(values.size());
  for (int round = 0; round < kRounds; ++round) {
    codec->encode(values, bytes);
    codec->add(bytes, 1, plain);
    feedback.encode(values, bytes);
    feedback.add(bytes, 1, fed_back);
  }
  EXPECT_EQ(plain[1], 0);
  EXPECT_NEAR(fed_back[1], 1, 0.01);
}

TEST(ErrorFeedbackTest, WantsAResidualForEachValue) {
  const auto codec = make_dense_codec(Codec::kTruncate16);
  std::vector<float> residual(3);
  std::vector<std::byte> bytes(8);
  EXPECT_THROW(ErrorFeedback(*codec, residual).encode(std::vector<float>(4), bytes),
               InvariantError);
}

}  // namespace
}  // namespace sluice
