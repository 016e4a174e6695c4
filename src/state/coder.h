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

// Packs and unpacks the gradients of one node with the strategy's codec, and keeps what packing
// leaves out. Its state is indexed like the parameters.
class Coder {
 public:
  // The layers must tile all parameters.
  Coder(const Strategy& strategy, const DeepGradient::Sender& sender, std::vector<Range> layers,
        std::size_t parameters);

  // Packs as the work says; the spans cover the whole model.
  std::vector<std::byte> encode(const Work& work, std::span<float> gradients,
                                std::span<const float> parameters);
  void decode(std::span<const std::byte> bytes, std::span<float> values) const;
  // sum += decoded
  void add(std::span<const std::byte> bytes, std::span<float> sum) const;

 private:
  std::unique_ptr<DenseCodec> dense_;  // null if the codec is sparse
  DeepGradient deep_;
  ZeroedBuffer residual_;
};

}  // namespace sluice
