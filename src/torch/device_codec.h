#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "base/range.h"
#include "model/strategy.h"
#include "torch/device_packer.h"

namespace sluice {

// Packs and unpacks gradients into the codes of codecs/bf16.h and codecs/quantise.h, with the error
// feedback of codecs/error_feedback.h. What comes back is the packed sum.
class DeviceCodec final : public DevicePacker {
 public:
  // The chunks are ranges of the gradients; with codec bf16 or quantise8.
  DeviceCodec(const Strategy& strategy, std::vector<Range> chunks, at::Tensor gradients);

  void send(std::span<const Range> layers, std::span<const std::size_t> chunks,
            const at::Tensor& host, Iteration iteration) override;
  void take_back(std::size_t first, std::size_t last, const at::Tensor& host) override;
  std::int64_t worth_sending() const override { return 1'000'000; }
  std::vector<at::Tensor> state() const override;

 private:
  // The codes of chunks of equal length.
  struct Rows {
    std::int64_t offset;  // of the first code, in bytes
    std::int64_t count;
    std::int64_t length;
  };

  Rows rows(std::size_t first, std::size_t end) const;
  // The bytes of a chunk's code, on the device.
  at::Tensor code(std::size_t chunk) const;
  void pack(std::size_t first, std::size_t last) const;
  std::int64_t stride_of(std::int64_t length) const;
  // The codes of these rows as elements of this type, from `skipped` bytes of each code on.
  at::Tensor elements(const Rows& rows, at::ScalarType type, std::int64_t skipped) const;
  at::Tensor steps(const Rows& rows) const;
  void write(const Rows& rows, const at::Tensor& values) const;
  void read(const Rows& rows, at::Tensor values) const;

  Codec codec_;
  double decay_;
  std::vector<Range> chunks_;
  std::vector<std::int64_t> offsets_;
  at::Tensor gradients_;
  at::Tensor codes_;
  at::Tensor residual_;  // undefined without error feedback
};

}  // namespace sluice
