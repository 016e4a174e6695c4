#include "state/coder.h"

#include <utility>

#include "codecs/error_feedback.h"

namespace sluice {

Coder::Coder(const Strategy& strategy, const DeepGradient::Sender& sender,
             std::vector<Range> layers, std::size_t parameters)
    : dense_(strategy.sparse() ? nullptr : make_dense_codec(strategy.codec)),
      deep_(strategy.dgc, sender, std::move(layers)),
      residual_(parameters) {}

std::vector<std::byte> Coder::encode(const Work& work, std::span<float> gradients,
                                     std::span<const float> parameters) {
  if (dense_ == nullptr) {
    return deep_.encode(gradients, parameters, work.range, work.iteration);
  }
  const auto begin = static_cast<std::size_t>(work.range.begin);
  const auto gradient = gradients.subspan(begin, static_cast<std::size_t>(work.range.size()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(dense_->encoded_size(work.range.size())));
  if (work.feedback) {
    ErrorFeedback(*dense_, residual_.values().subspan(begin, gradient.size()))
        .encode(gradient, bytes);
  } else {
    dense_->encode(gradient, bytes);
  }
  if (work.exact) {
    dense_->decode(bytes, gradient);
  }
  return bytes;
}

void Coder::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  dense_->decode(bytes, values);
}

void Coder::add(std::span<const std::byte> bytes, std::span<float> sum) const {
  dense_->add(bytes, 1, sum);
}

}  // namespace sluice
