#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "base/range.h"
#include "model/deep_gradient_options.h"
#include "torch/device_packer.h"

namespace sluice {

// Codec dgc where the gradients are: codecs/deep_gradient.h, but for the last bits and for the
// choice between equal values. What comes back is a patch of the parameters. Processes that share a
// device take turns between any two operations, so there are few, and each on many layers.
class DeviceSelection final : public DevicePacker {
 public:
  // The chunks are ranges of the gradients. `latest` is the host's parameters, which have changed
  // where a patch says so.
  DeviceSelection(const DeepGradientOptions& options, const DeepGradientSender& sender,
                  std::vector<Range> chunks, at::Tensor gradients, at::Tensor parameters,
                  at::Tensor latest);

  void send(std::span<const Range> layers, std::span<const std::size_t> chunks,
            const at::Tensor& host, Iteration iteration) override;
  void deliver(const at::Tensor& host) override;
  void take_back(std::size_t first, std::size_t last, const at::Tensor& host) override;
  // What is not finite is larger than all else, so it was sent.
  bool finds_not_finite() const override { return true; }
  bool is_finite(const Range& layer) const override;
  std::int64_t worth_sending() const override { return 8'000'000; }
  // Velocity and residual.
  std::vector<at::Tensor> state() const override { return {velocity_, residual_}; }

 private:
  // What was selected in one call of send(), on its way to the host.
  struct Selected {
    std::vector<std::size_t> chunks;
    std::vector<std::size_t> entries;  // by chunk
    at::Tensor positions;              // in the model; they ascend
    at::Tensor values;
  };

  // Makes the gradients of these layers part of velocity and residual.
  void take_in(std::span<const Range> layers) const;
  void clip(std::span<const Range> layers) const;
  // The positions of the largest values of the chunks from `first` up to `last`, in any order.
  void find_largest(std::size_t first, std::size_t last, Iteration iteration,
                    std::vector<at::Tensor>& found) const;

  DeepGradientOptions options_;
  DeepGradientSender sender_;
  std::vector<Range> chunks_;
  at::Tensor gradients_;
  at::Tensor parameters_;
  at::Tensor latest_;
  at::Tensor velocity_;
  at::Tensor residual_;
  std::deque<Selected> in_flight_;
  std::vector<std::int64_t> not_finite_;  // positions that were sent in this step
};

}  // namespace sluice
