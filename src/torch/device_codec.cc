#include "torch/device_codec.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
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

DeviceCodec::DeviceCodec(const Strategy& strategy, std::vector<Range> chunks, at::Tensor gradients)
    : codec_(strategy.codec),
      decay_(strategy.feedback_decay),
      chunks_(std::move(chunks)),
      gradients_(std::move(gradients)) {
  check(codec_ == Codec::kBf16 || codec_ == Codec::kQuantise8, "a device packs to bf16 and 8 bits");
  std::int64_t bytes = 0;
  for (const Range& chunk : chunks_) {
    offsets_.push_back(bytes);
    bytes += stride_of(chunk.size());
  }
  codes_ = at::empty({bytes}, gradients_.options().dtype(at::kByte));
  if (strategy.error_feedback) {
    residual_ = at::zeros_like(gradients_);
  }
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

DeviceCodec::Rows DeviceCodec::rows(std::size_t first, std::size_t end) const {
  return {offsets_[first], static_cast<std::int64_t>(end - first), chunks_[first].size()};
}

void DeviceCodec::write(const Rows& rows, const at::Tensor& values) const {
  if (codec_ == Codec::kBf16) {
    elements(rows, at::kBFloat16, 0).copy_(values);
    return;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor step = step_for(at::linalg_vector_norm(values, infinity, {1}, true));
  const at::Tensor per_value = at::where(step.gt(0), step.reciprocal(), at::zeros_like(step));
  steps(rows).copy_(step);
  elements(rows, at::kChar, sizeof(float)).copy_(values.mul(per_value).round_());
}

void DeviceCodec::read(const Rows& rows, at::Tensor values) const {
  if (codec_ == Codec::kBf16) {
    values.copy_(elements(rows, at::kBFloat16, 0));
  } else {
    at::mul_out(values, elements(rows, at::kChar, sizeof(float)), steps(rows));
  }
}

void DeviceCodec::send(std::span<const Range> /*layers*/, std::span<const std::size_t> chunks,
                       const at::Tensor& host, Iteration /*iteration*/) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  for_runs(chunks, [&](std::size_t first, std::size_t last) { pack(first, last); });
  for (const std::size_t chunk : chunks) {
    const at::Tensor bytes = code(chunk);
    code_in(host, chunks_[chunk], bytes.numel()).copy_(bytes, /*non_blocking=*/true);
  }
}

void DeviceCodec::pack(std::size_t first, std::size_t last) const {
  for_rows(chunks_, first, last, [&](std::size_t begin, std::size_t end) {
    const Rows codes = rows(begin, end);
    const at::Tensor values = rows_of(gradients_, chunks_, begin, end);
    if (!residual_.defined()) {
      write(codes, values);
      return;
    }
    at::Tensor residual = rows_of(residual_, chunks_, begin, end);
    residual.mul_(decay_).add_(values);
    write(codes, residual);
    at::Tensor coded = at::empty_like(residual);
    read(codes, coded);
    residual.sub_(coded);
  });
}

void DeviceCodec::take_back(std::size_t first, std::size_t last, const at::Tensor& host) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  for (std::size_t chunk = first; chunk < last; ++chunk) {
    const at::Tensor on_device = code(chunk);
    on_device.copy_(code_in(host, chunks_[chunk], on_device.numel()), /*non_blocking=*/true);
  }
  for_rows(chunks_, first, last, [&](std::size_t begin, std::size_t end) {
    read(rows(begin, end), rows_of(gradients_, chunks_, begin, end));
  });
}

std::vector<at::Tensor> DeviceCodec::state() const {
  return residual_.defined() ? std::vector{residual_} : std::vector<at::Tensor>();
}

}  // namespace sluice
