// What LibTorch's operators pack has the bytes of the codecs.
#include "torch/device_codec.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "codecs/dense.h"
#include "codecs/error_feedback.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

std::vector<Range> any_chunks() {
  std::vector<Range> chunks;
  std::int64_t begin = 0;
  const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(
      rc::gen::oneOf(rc::gen::just<std::int64_t>(70), rc::gen::inRange<std::int64_t>(2, 300))));
  for (const std::int64_t length : lengths) {
    chunks.push_back({begin, begin + length});
    begin += length;
  }
  return chunks;
}

std::span<float> values_in(const at::Tensor& flat, const Range& range) {
  return span_of(flat).subspan(static_cast<std::size_t>(range.begin),
                               static_cast<std::size_t>(range.size()));
}

Strategy packed_with(Codec codec) {
  Strategy strategy;
  strategy.codec = codec;
  return strategy;
}

// The host's gradients, with codes in the place of the first chunks.
at::Tensor packed(DeviceCodec& codec, std::size_t last, const at::Tensor& gradients) {
  at::Tensor memory = gradients.clone();
  std::vector<std::size_t> chunks(last);
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  codec.send({}, chunks, memory, 1);
  codec.deliver(memory);
  return memory;
}

RC_GTEST_PROP(DeviceCodecTest, PacksAndUnpacksAsTheHostDoes, ()) {
  const Codec kind = *rc::gen::element(Codec::kBf16, Codec::kQuantise8);
  const std::vector<Range> chunks = any_chunks();
  const at::Tensor gradients = at::zeros({chunks.back().end}, at::kFloat);
  for (const Range& chunk : chunks) {
    const int exponent = *rc::gen::element(0, -3, 60, -99, -110, -140);
    for (float& value : values_in(gradients, chunk)) {
      value = std::ldexp(static_cast<float>(*rc::gen::inRange(-1'000'000, 1'000'001)) * 1e-6F,
                         exponent);
    }
  }
  const at::Tensor original = gradients.clone();
  DeviceCodec codec(packed_with(kind), chunks, gradients);
  const auto last = *rc::gen::inRange<std::size_t>(1, chunks.size() + 1);
  const at::Tensor memory = packed(codec, last, gradients);
  codec.take_back(0, last, memory);
  const auto host = make_dense_codec(kind);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::span<float> given = values_in(original, chunks[c]);
    const std::span<float> unpacked = values_in(gradients, chunks[c]);
    if (c >= last) {
      RC_ASSERT(std::ranges::equal(unpacked, given));
      continue;
    }
    std::vector<std::byte> code(static_cast<std::size_t>(host->encoded_size(std::ssize(given))));
    host->encode(given, code);
    RC_ASSERT(
        std::ranges::equal(std::as_bytes(values_in(memory, chunks[c])).first(code.size()), code));
    std::vector<float> expected(given.size());
    host->decode(code, expected);
    RC_ASSERT(std::ranges::equal(unpacked, expected));
  }
}

RC_GTEST_PROP(DeviceCodecTest, KeepsWhatCodesLoseAsTheHostDoes, ()) {
  Strategy strategy = packed_with(*rc::gen::element(Codec::kBf16, Codec::kQuantise8));
  strategy.error_feedback = true;
  strategy.feedback_decay = *rc::gen::element(0.5, 1.0);
  const std::vector<Range> chunks = any_chunks();
  const at::Tensor gradients = at::zeros({chunks.back().end}, at::kFloat);
  DeviceCodec codec(strategy, chunks, gradients);
  const auto host = make_dense_codec(strategy.codec);
  std::vector<float> residual(span_of(gradients).size());
  for (int step = 0; step < 3; ++step) {
    for (float& value : span_of(gradients)) {
      value = static_cast<float>(*rc::gen::inRange(-1000, 1001)) * 0x1p-6F;
    }
    const at::Tensor memory = packed(codec, chunks.size(), gradients);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const std::span<float> values = values_in(gradients, chunks[c]);
      const std::span<float> kept =
          std::span(residual).subspan(static_cast<std::size_t>(chunks[c].begin), values.size());
      const ErrorFeedback corrected(*host, kept, static_cast<float>(strategy.feedback_decay));
      std::vector<std::byte> code(static_cast<std::size_t>(host->encoded_size(std::ssize(values))));
      corrected.encode(values, code);
      const std::vector<float> before(kept.begin(), kept.end());
      std::vector<float> said(values.size());
      std::vector<float> own(values.size());
      host->decode(code, said);
      host->decode(std::as_bytes(values_in(memory, chunks[c])).first(code.size()), own);
      for (std::size_t i = 0; i < said.size(); ++i) {
        const float step = std::abs(said[i]) * 0x1p-6F + 0.3F;  // of a code
        RC_ASSERT(std::abs(said[i] - own[i]) <= step);
        RC_ASSERT(std::abs(before[i] + said[i] -
                           (values_in(codec.state().front(), chunks[c])[i] + own[i])) <= 1e-3F);
      }
      std::ranges::copy(values_in(codec.state().front(), chunks[c]), kept.begin());
    }
  }
}

TEST(DeviceCodecTest, WhatIsNotFiniteStaysSo) {
  for (const Codec kind : {Codec::kBf16, Codec::kQuantise8}) {
    for (const float bad : {std::nanf(""), HUGE_VALF}) {
      const at::Tensor gradients = at::zeros({20}, at::kFloat);
      span_of(gradients)[3] = bad;
      const std::vector<Range> chunks{{0, 10}, {10, 20}};
      DeviceCodec codec(packed_with(kind), chunks, gradients);
      codec.take_back(0, 2, packed(codec, 2, gradients));
      EXPECT_FALSE(std::isfinite(span_of(gradients)[3]));
      EXPECT_EQ(span_of(gradients)[13], 0);
    }
  }
}

}  // namespace
}  // namespace sluice
