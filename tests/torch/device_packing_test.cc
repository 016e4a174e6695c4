// Codes of chunks on their way between a device and its host; here the device is the host.
#include "torch/device_packing.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "codecs/dense.h"
#include "torch/device_codec.h"
#include "torch/flat_parameters.h"

namespace sluice {
namespace {

struct SomeChunks {
  std::vector<Layer> layers;
  ChunkMap chunks;
};

SomeChunks some_chunks() {
  const auto sizes = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(2, 400)));
  std::vector<std::string> names;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    names.push_back(std::to_string(l));
  }
  Strategy strategy;
  strategy.slice_params = *rc::gen::inRange<std::int64_t>(40, 300);
  strategy.join_params = *rc::gen::element<std::int64_t>(0, 300);
  const std::vector<Layer> layers = lay_out(names, sizes);
  return {layers, make_chunks(layers, 2, strategy)};
}

std::span<float> in_chunk(const at::Tensor& flat, const Range& range) {
  return span_of(flat).subspan(static_cast<std::size_t>(range.begin),
                               static_cast<std::size_t>(range.size()));
}

RC_GTEST_PROP(DevicePackingTest, EveryChunkIsPackedAndUnpackedOnceInAStep, ()) {
  const auto [layers, chunks] = some_chunks();
  RC_PRE(std::ranges::all_of(chunks.all(), [](const Chunk& chunk) {
    return chunk.range.size() > 1;  // else a code does not fit
  }));
  const Codec kind = *rc::gen::element(Codec::kBf16, Codec::kQuantise8);
  const auto codec = make_dense_codec(kind);
  const at::Tensor device = at::zeros({layers.back().range.end}, at::kFloat);
  const at::Tensor host = device.clone();
  Strategy packed;
  packed.codec = kind;
  DevicePacking packing(std::make_unique<DeviceCodec>(packed, ranges_in(chunks), device), chunks,
                        layers);
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int step = 0; step < 2; ++step) {
    for (std::size_t i = 0; i < span_of(device).size(); ++i) {
      span_of(device)[i] = static_cast<float>((i * 7919 + static_cast<std::size_t>(step)) % 1000);
    }
    const at::Tensor gradients = device.clone();
    // Layers of different branches of a network may be final in any order.
    std::vector<std::size_t> left = order;
    while (!left.empty()) {
      const auto next = left.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(left));
      if (packing.add(LayerId(*next)) || *rc::gen::arbitrary<bool>()) {
        packing.send(host, step + 1);
      }
      left.erase(next);
    }
    packing.send(host, step + 1);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      packing.arrive(LayerId(l), host);
    }
    packing.end_step();
    device.zero_();
    std::int64_t unpacked = 0;
    for (std::size_t first = 0; first < layers.size();) {
      const auto end = *rc::gen::inRange(first + 1, layers.size() + 1);
      const Range range = packing.bring(first, end, host);
      RC_ASSERT(range.size() == 0 || range.begin == unpacked);
      unpacked = range.size() == 0 ? unpacked : range.end;
      RC_ASSERT(unpacked >= layers[end - 1].range.end);
      first = end;
    }
    RC_ASSERT(unpacked == device.numel());
    packing.end_step();
    for (const Chunk& chunk : chunks.all()) {
      const std::span<float> given = in_chunk(gradients, chunk.range);
      std::vector<std::byte> code(static_cast<std::size_t>(codec->encoded_size(std::ssize(given))));
      codec->encode(given, code);
      const auto memory = std::as_bytes(in_chunk(host, chunk.range)).first(code.size());
      RC_ASSERT(std::ranges::equal(memory, code));
      std::vector<float> expected(given.size());
      codec->decode(code, expected);
      RC_ASSERT(std::ranges::equal(in_chunk(device, chunk.range), expected));
    }
  }
}

}  // namespace
}  // namespace sluice
