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
  // The layers tile the parameters, whose number is given.
  Coder(const Strategy& strategy, const DeepGradient::Sender& sender, std::vector<Range> layers,
        std::size_t parameters);

  // As the work says; the spans are of the whole model.
  std::vector<std::byte> encode(const Work& work, std::span<float> gradients,
                                std::span<const float> parameters);
  void decode(std::span<const std::byte> bytes, std::span<float> values) const;
  // sum += decoded
  void add(std::span<const std::byte> bytes, std::span<float> sum) const;

 private:
  std::unique_ptr<DenseCodec> dense_;  // none if the codec is sparse
  DeepGradient deep_;
  ZeroedBuffer residual_;
};

}  // namespace sluice
