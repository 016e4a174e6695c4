#include "torch/device_packing.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// Fewer take longer to queue than to pack.
constexpr std::int64_t kWorthABatch = 1'000'000;

std::vector<Range> ranges_in(const ChunkMap& chunks) {
  std::vector<Range> ranges;
  for (const Chunk& chunk : chunks.all()) {
    ranges.push_back(chunk.range);
  }
  return ranges;
}

void copy_bytes(const at::Tensor& from, const at::Tensor& to) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  to.copy_(from, /*non_blocking=*/true);
}

}  // namespace

DevicePacking::DevicePacking(Codec codec, const ChunkMap& chunks, at::Tensor gradients)
    : codec_(codec, ranges_in(chunks), gradients.device()),
      gradients_(std::move(gradients)),
      chunks_of_(chunks.layers()),
      layers_(chunks.size()),
      brought_(chunks.size()) {
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (const LayerId layer : chunks.layers_of(ChunkId(c))) {
      chunks_of_[layer.index()].push_back(c);
      ++layers_[c];
    }
  }
  missing_ = layers_;
}

at::Tensor DevicePacking::code_on(const at::Tensor& host, std::size_t chunk) const {
  const auto begin = codec_.range(chunk).begin * static_cast<std::int64_t>(sizeof(float));
  return host.view(at::kByte).narrow(0, begin, codec_.code(chunk).numel());
}

bool DevicePacking::add(LayerId layer) {
  for (const std::size_t chunk : chunks_of_[layer.index()]) {
    if (--missing_[chunk] == 0) {
      final_.push_back(chunk);
      values_ += codec_.range(chunk).size();
    }
  }
  return values_ >= kWorthABatch;
}

void DevicePacking::send(const at::Tensor& host) {
  std::ranges::sort(final_);
  for (std::size_t i = 0; i < final_.size();) {
    std::size_t end = i + 1;
    while (end < final_.size() && final_[end] == final_[end - 1] + 1) {
      ++end;
    }
    codec_.pack(final_[i], final_[end - 1] + 1, gradients_);
    i = end;
  }
  for (const std::size_t chunk : final_) {
    copy_bytes(codec_.code(chunk), code_on(host, chunk));
  }
  final_.clear();
  values_ = 0;
}

Range DevicePacking::bring(std::size_t first, std::size_t end, const at::Tensor& host) {
  std::vector<std::size_t> chunks;
  for (std::size_t layer = first; layer < end; ++layer) {
    for (const std::size_t chunk : chunks_of_[layer]) {
      if (!brought_[chunk]) {
        brought_[chunk] = true;
        copy_bytes(code_on(host, chunk), codec_.code(chunk));
        chunks.push_back(chunk);
      }
    }
  }
  if (chunks.empty()) {
    return {};
  }
  codec_.unpack(chunks.front(), chunks.back() + 1, gradients_);
  return {codec_.range(chunks.front()).begin, codec_.range(chunks.back()).end};
}

void DevicePacking::end_step() {
  missing_ = layers_;
  brought_.assign(brought_.size(), false);
}

}  // namespace sluice
