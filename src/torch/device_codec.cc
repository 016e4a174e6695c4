#include "torch/device_codec.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>

#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

// Codes begin at multiples of it, so that their parts can be read as any type.
constexpr std::int64_t kAlignment = 16;
constexpr double kLargestCode = 127;
constexpr float kMinRange = 0x1.fffep-101F;
constexpr int kDroppedBits = 0x7f;

// As Quantise<8>::step_for() has it.
at::Tensor step_for(const at::Tensor& largest) {
  const at::Tensor exact = largest.div(kLargestCode);
  const at::Tensor step = exact.view(at::kInt).bitwise_and(~kDroppedBits).view(at::kFloat);
  const at::Tensor kept =
      at::where(step.mul(kLargestCode).lt(kMinRange), at::zeros_like(step), step);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return at::where(exact.isfinite(), kept, at::full_like(kept, nan));
}

}  // namespace

DeviceCodec::DeviceCodec(Codec codec, std::vector<Range> chunks, c10::Device device)
    : codec_(codec), chunks_(std::move(chunks)) {
  check(codec == Codec::kBf16 || codec == Codec::kQuantise8, "a device packs to bf16 and 8 bits");
  std::int64_t bytes = 0;
  for (const Range& chunk : chunks_) {
    offsets_.push_back(bytes);
    bytes += stride_of(chunk.size());
  }
  codes_ = at::empty({bytes}, at::TensorOptions(at::kByte).device(device));
}

std::int64_t DeviceCodec::stride_of(std::int64_t length) const {
  return (traits_of(codec_).size(length) + kAlignment - 1) / kAlignment * kAlignment;
}

at::Tensor DeviceCodec::code(std::size_t chunk) const {
  return codes_.narrow(0, offsets_[chunk], traits_of(codec_).size(chunks_[chunk].size()));
}

at::Tensor DeviceCodec::elements(const Rows& rows, at::ScalarType type,
                                 std::int64_t skipped) const {
  const auto width = static_cast<std::int64_t>(c10::elementSize(type));
  return codes_.view(type).as_strided({rows.count, rows.length},
                                      {stride_of(rows.length) / width, 1},
                                      (rows.offset + skipped) / width);
}

at::Tensor DeviceCodec::steps(const Rows& rows) const {
  const auto width = static_cast<std::int64_t>(sizeof(float));
  return codes_.view(at::kFloat)
      .as_strided({rows.count, 1}, {stride_of(rows.length) / width, 1}, rows.offset / width);
}

template <class Take>
void DeviceCodec::for_rows(std::size_t first, std::size_t last, const at::Tensor& gradients,
                           Take take) const {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  while (first < last) {
    const std::int64_t length = chunks_[first].size();
    std::size_t end = first + 1;
    while (end < last && chunks_[end].size() == length &&
           chunks_[end].begin == chunks_[end - 1].end) {
      ++end;
    }
    const Rows rows{offsets_[first], static_cast<std::int64_t>(end - first), length};
    take(rows,
         gradients.narrow(0, chunks_[first].begin, rows.count * length).view({rows.count, length}));
    first = end;
  }
}

void DeviceCodec::pack(std::size_t first, std::size_t last, const at::Tensor& gradients) const {
  for_rows(first, last, gradients, [&](const Rows& rows, const at::Tensor& values) {
    if (codec_ == Codec::kBf16) {
      elements(rows, at::kBFloat16, 0).copy_(values);
      return;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    const at::Tensor step = step_for(at::linalg_vector_norm(values, infinity, {1}, true));
    const at::Tensor per_value = at::where(step.gt(0), step.reciprocal(), at::zeros_like(step));
    steps(rows).copy_(step);
    elements(rows, at::kChar, sizeof(float)).copy_(values.mul(per_value).round_());
  });
}

void DeviceCodec::unpack(std::size_t first, std::size_t last, const at::Tensor& gradients) const {
  for_rows(first, last, gradients, [&](const Rows& rows, at::Tensor values) {
    if (codec_ == Codec::kBf16) {
      values.copy_(elements(rows, at::kBFloat16, 0));
      return;
    }
    at::mul_out(values, elements(rows, at::kChar, sizeof(float)), steps(rows));
  });
}

}  // namespace sluice
