#include "torch/device_packing.h"

#include <algorithm>
#include <utility>

#include "torch/device_codec.h"
#include "torch/device_factors.h"
#include "torch/device_selection.h"

namespace sluice {

std::vector<Range> ranges_in(const ChunkMap& chunks) {
  std::vector<Range> ranges;
  for (const Chunk& chunk : chunks.all()) {
    ranges.push_back(chunk.range);
  }
  return ranges;
}

std::unique_ptr<DevicePacker> packer_for(const Strategy& strategy, const DeepGradientSender& sender,
                                         const ChunkMap& chunks, const std::vector<Layer>& layers,
                                         const FlatParameters& flat, const at::Tensor& parameters) {
  if (strategy.factored()) {
    return std::make_unique<DeviceFactors>(strategy, chunks, sender.senders, layers,
                                           flat.gradients());
  }
  if (strategy.sparse()) {
    return std::make_unique<DeviceSelection>(strategy.dgc, sender, ranges_in(chunks),
                                             flat.gradients(), flat.values(), parameters);
  }
  return std::make_unique<DeviceCodec>(strategy, ranges_in(chunks), flat.gradients());
}

DevicePacking::DevicePacking(std::unique_ptr<DevicePacker> packer, const ChunkMap& chunks,
                             const std::vector<Layer>& layers)
    : packer_(std::move(packer)) {
  for (const Layer& layer : layers) {
    layers_.push_back({layer.range});
  }
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const auto of_chunk = chunks.layers_of(ChunkId(c));
    for (const LayerId layer : of_chunk) {
      layers_[layer.index()].chunks.push_back(c);
    }
    const auto count = static_cast<std::uint32_t>(of_chunk.size());
    chunks_.push_back({.range = chunks[ChunkId(c)].range, .layers = count, .missing = count});
  }
}

bool DevicePacking::add(LayerId layer) {
  new_.push_back(layer);
  for (const std::size_t chunk : layers_[layer.index()].chunks) {
    if (--chunks_[chunk].missing == 0) {
      final_.push_back(chunk);
      values_ += chunks_[chunk].range.size();
    }
  }
  return values_ >= packer_->worth_sending();
}

void DevicePacking::send(const at::Tensor& host, Iteration iteration) {
  ++sent_;
  std::ranges::sort(new_);
  std::vector<Range> ranges;
  for (const LayerId layer : new_) {
    layers_[layer.index()].sent_with = sent_;
    ranges.push_back(layers_[layer.index()].range);
  }
  std::ranges::sort(final_);
  packer_->send(ranges, final_, host, iteration);
  new_.clear();
  final_.clear();
  values_ = 0;
}

void DevicePacking::arrive(LayerId layer, const at::Tensor& host) {
  for (; arrived_ < layers_[layer.index()].sent_with; ++arrived_) {
    packer_->deliver(host);
  }
}

Range DevicePacking::bring(std::size_t first, std::size_t end, const at::Tensor& host) {
  std::vector<std::size_t> chunks;
  for (std::size_t layer = first; layer < end; ++layer) {
    for (const std::size_t chunk : layers_[layer].chunks) {
      if (!std::exchange(chunks_[chunk].brought, true)) {
        chunks.push_back(chunk);
      }
    }
  }
  if (chunks.empty()) {
    return {};
  }
  packer_->take_back(chunks.front(), chunks.back() + 1, host);
  return {chunks_[chunks.front()].range.begin, chunks_[chunks.back()].range.end};
}

void DevicePacking::end_step() {
  for (OfChunk& chunk : chunks_) {
    chunk.missing = chunk.layers;
    chunk.brought = false;
  }
}

}  // namespace sluice
