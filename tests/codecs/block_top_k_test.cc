#include "codecs/block_top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "codecs/top_k.h"
#include "codecs/values.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TopKOptions any_block_options() {
  TopKOptions options;
  options.block = *rc::gen::inRange<std::int64_t>(1, 200);
  options.kept = *rc::gen::inRange<std::int64_t>(1, options.block + 1);
  options.bits = *rc::gen::element<std::int64_t>(2, 32);
  return options;
}

std::vector<float> decoded(const BlockTopK& codec, std::span<const std::byte> code,
                           std::size_t count) {
  std::vector<float> values(count);
  codec.add(code, values);
  return values;
}

// Block by block, with the selection that has tests of its own.
RC_GTEST_PROP(BlockTopKProperties, SendsTheLargestOfEachBlock, ()) {
  const TopKOptions options = any_block_options();
  const BlockTopK codec(options);
  const auto values = testing::any_values(0, 700);
  auto left = values;
  const auto code = codec.take(left);
  RC_ASSERT(static_cast<Bytes>(code.size()) == codec.size(std::ssize(values)));
  RC_ASSERT(static_cast<bool>(codec.check(code, std::ssize(values))));
  const auto arrived = decoded(codec, code, values.size());
  const auto block = static_cast<std::size_t>(options.block);
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const auto part = std::span(values).subspan(begin, std::min(block, values.size() - begin));
    std::vector<bool> sent(part.size());
    for (const std::uint32_t position : top_k(part, static_cast<std::size_t>(options.kept))) {
      sent[position] = true;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      RC_ASSERT(sent[i] || arrived[begin + i] == 0);
      if (sent[i] && options.bits == 32) {
        RC_ASSERT(arrived[begin + i] == part[i]);
        RC_ASSERT(left[begin + i] == 0);
      }
    }
  }
}

RC_GTEST_PROP(BlockTopKProperties, WhatIsLeftIsWhatWasNotSent, ()) {
  const BlockTopK codec(any_block_options());
  const auto values = testing::any_values(1, 500);
  auto left = values;
  const auto code = codec.take(left);
  const auto arrived = decoded(codec, code, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(left[i] == values[i] - arrived[i]);
  }
}

// Each level is the mean of those that it stands for, so none is off by more than all spread.
RC_GTEST_PROP(BlockTopKProperties, TwoBitsKeepTheSignAndTheSum, ()) {
  TopKOptions options = any_block_options();
  options.bits = 2;
  const BlockTopK codec(options);
  const auto values = testing::values_of(testing::Flavour::kSmooth, 400, testing::any_number());
  auto left = values;
  const auto code = codec.take(left);
  const auto arrived = decoded(codec, code, values.size());
  const auto block = static_cast<std::size_t>(options.block);
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    double sent = 0;
    double exact = 0;
    for (std::size_t i = begin; i < std::min(begin + block, values.size()); ++i) {
      if (arrived[i] != 0) {
        RC_ASSERT(std::signbit(arrived[i]) == std::signbit(values[i]));
        sent += std::abs(static_cast<double>(arrived[i]));
        exact += std::abs(static_cast<double>(values[i]));
      }
    }
    RC_ASSERT(std::abs(sent - exact) <= 0x1p-8 * exact);
  }
}

TEST(BlockTopK, TakesEightBitsForAPosition) {
  EXPECT_EQ(BlockTopK({}).size(4096), 64 + 4 + 16);
  EXPECT_EQ(BlockTopK({}).size(2 * 4096), 2 * 84);
  EXPECT_EQ(BlockTopK({.bits = 32}).size(4096), 64 + 256);
  EXPECT_EQ(BlockTopK({}).size(64), 4 + 16) << "all are sent, so positions say nothing";
  EXPECT_EQ(BlockTopK({}).size(0), 0);
}

TEST(BlockTopK, DoesNotHideADivergence) {
  const BlockTopK codec({.block = 8, .kept = 2});
  for (const float bad : {testing::kNan, testing::kInf}) {
    std::vector<float> values{1, 2, 3, bad, 5, 6, 7, 8};
    const auto code = codec.take(values);
    EXPECT_FALSE(std::isfinite(decoded(codec, code, values.size())[3]));
  }
}

// Bytes from anyone are refused or read, and never lead outside the vector.
RC_GTEST_PROP(BlockTopKProperties, AnyBytesAreRefusedOrLieInside, ()) {
  const BlockTopK codec(any_block_options());
  const auto count = *rc::gen::inRange<std::int64_t>(1, 400);
  std::vector<std::byte> code(static_cast<std::size_t>(codec.size(count)));
  Random random(testing::any_number());
  for (std::byte& byte : code) {
    byte = static_cast<std::byte>(random.below(256));
  }
  std::vector<float> sum(static_cast<std::size_t>(count));
  if (codec.check(code, count)) {
    codec.add(code, sum);
  } else {
    RC_ASSERT_THROWS_AS(codec.add(code, sum), std::logic_error);
  }
}

TEST(BlockTopK, RefusesWhatIsNoCode) {
  const BlockTopK codec({.block = 8, .kept = 2, .bits = 32});  // two low bits, then four upper ones
  std::vector<float> values{0, 0, 0, 9, 0, 0, 0, 8};
  auto code = codec.take(values);
  EXPECT_TRUE(codec.check(code, 8));
  const auto fault = [&](std::int64_t count) {
    const auto valid = codec.check(code, count);
    return valid ? "" : valid.error().message();
  };
  EXPECT_THAT(fault(9), HasSubstr("expected"));
  code.pop_back();
  EXPECT_THAT(fault(8), HasSubstr("bytes, expected 9 for 8 values"));
  code.push_back({});
  code[0] = std::byte{0b0011'1111};  // both at 3
  EXPECT_THAT(fault(8), HasSubstr("entry 1: position 3, expected 4 ... 7"));
  code[0] = std::byte{0b0001'0000};
  EXPECT_THAT(fault(8), HasSubstr("1 positions of 2"));
}

}  // namespace
}  // namespace sluice
