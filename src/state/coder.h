#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/zeroed_buffer.h"
#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "model/strategy.h"
#include "protocol/work.h"

namespace sluice {

// Packs and unpacks the gradients of one node as the strategy's codec says, and keeps what that
// leaves behind. Its state is indexed like the parameters.
class Coder {
 public:
  // The momentum is that of the update rule.
  Coder(const Strategy& strategy, std::size_t workers, float momentum, std::size_t parameters);

  // As the work says; the gradient is that of the work's range.
  std::vector<std::byte> encode(const Work& work, std::span<float> gradient);
  void decode(std::span<const std::byte> bytes, std::span<float> values) const;
  // sum += decoded
  void add(std::span<const std::byte> bytes, std::span<float> sum) const;

 private:
  std::unique_ptr<DenseCodec> dense_;  // none if the codec is sparse
  DeepGradient deep_;
  ZeroedBuffer residual_;
};

}  // namespace sluice
