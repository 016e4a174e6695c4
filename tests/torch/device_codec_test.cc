// What LibTorch's operators pack has the bytes of the codecs.
#include "torch/device_codec.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "codecs/dense.h"
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
  const DeviceCodec codec(kind, chunks, at::kCPU);
  const auto last = *rc::gen::inRange<std::size_t>(1, chunks.size() + 1);
  codec.pack(0, last, gradients);
  codec.unpack(0, last, gradients);
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
    const at::Tensor own = codec.code(c);
    const auto bytes = std::as_bytes(
        std::span(own.data_ptr<std::uint8_t>(), static_cast<std::size_t>(own.numel())));
    RC_ASSERT(std::ranges::equal(bytes, code));
    std::vector<float> expected(given.size());
    host->decode(code, expected);
    RC_ASSERT(std::ranges::equal(unpacked, expected));
  }
}

TEST(DeviceCodecTest, WhatIsNotFiniteStaysSo) {
  for (const Codec kind : {Codec::kBf16, Codec::kQuantise8}) {
    for (const float bad : {std::nanf(""), HUGE_VALF}) {
      const at::Tensor gradients = at::zeros({20}, at::kFloat);
      span_of(gradients)[3] = bad;
      const DeviceCodec codec(kind, {{0, 10}, {10, 20}}, at::kCPU);
      codec.pack(0, 2, gradients);
      codec.unpack(0, 2, gradients);
      EXPECT_FALSE(std::isfinite(span_of(gradients)[3]));
      EXPECT_EQ(span_of(gradients)[13], 0);
    }
  }
}

}  // namespace
}  // namespace sluice
