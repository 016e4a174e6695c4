#include "codecs/deep_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "codecs/sparse.h"
#include "codecs/top_k.h"

namespace sluice {
namespace {

// Sums in lanes of their own, in a fixed order: it vectorises and always gives the same bits.
double norm_of(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double x = values[i + lane];
      lanes[lane] += x * x;
    }
  }
  for (; i < values.size(); ++i) {
    const double x = values[i];
    lanes[0] += x * x;
  }
  return std::sqrt(std::accumulate(lanes.begin(), lanes.end(), 0.0));
}

template <class T>
std::span<T> part(std::span<T> whole, const Range& range) {
  return whole.subspan(static_cast<std::size_t>(range.begin),
                       static_cast<std::size_t>(range.size()));
}

std::size_t length_of(const std::vector<Range>& layers) {
  return layers.empty() ? 0 : static_cast<std::size_t>(layers.back().end);
}

}  // namespace

DeepGradient::DeepGradient(const DeepGradientOptions& options, const DeepGradientSender& sender,
                           std::vector<Range> layers)
    : options_(options),
      momentum_(sender.momentum),
      decay_(sender.decay()),
      clip_norm_(sender.clip_norm(options)),
      layers_(std::move(layers)),
      clips_(layers_.size()),
      velocity_(length_of(layers_)),
      residual_(length_of(layers_)) {
  check(options.sparsity >= 0 && options.sparsity < 1, "sparsity is a share below 1");
  check(sender.senders > 0 && sender.group > 0, "there is a worker");
}

float DeepGradient::clip_factor(std::size_t layer, std::span<const float> gradients,
                                Iteration iteration) {
  Clip& clip = clips_[layer];
  if (options_.clipping && clip.iteration != iteration) {
    const double norm = norm_of(part(gradients, layers_[layer]));
    const bool clips = std::isfinite(norm) && norm > clip_norm_;
    clip = {iteration, clips ? static_cast<float>(clip_norm_ / norm) : 1.0F};
  }
  return clip.factor;
}

void DeepGradient::take_in(std::span<const float> gradients, std::span<const float> parameters,
                           const Range& range, float clip) {
  const auto gradient = part(gradients, range);
  const auto velocity = part(velocity_.values(), range);
  const auto residual = part(residual_.values(), range);
  const float momentum = momentum_;
  const bool corrects = options_.momentum_correction;
  const bool accumulates = options_.accumulation;
  const auto take = [&](std::size_t i, float g) {
    const float v = corrects ? momentum * velocity[i] + g : g;
    velocity[i] = v;
    residual[i] = accumulates ? residual[i] + v : v;
  };
  if (decay_ == 0) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      take(i, clip * gradient[i]);
    }
  } else {
    const auto weights = part(parameters, range);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      take(i, clip * gradient[i] + decay_ * weights[i]);
    }
  }
}

std::span<const Range> DeepGradient::layers_in(const Range& chunk) const {
  const auto first = std::ranges::upper_bound(layers_, chunk.begin, {}, &Range::end);
  const auto last = std::ranges::lower_bound(first, layers_.end(), chunk.end, {}, &Range::begin);
  return {first, last};
}

std::vector<float> DeepGradient::clip_factors(std::span<const float> gradients, const Range& chunk,
                                              Iteration iteration) {
  check(gradients.size() == residual_.values().size(), "the gradients are of the whole model");
  std::vector<float> factors;
  for (const Range& layer : layers_in(chunk)) {
    factors.push_back(
        clip_factor(static_cast<std::size_t>(&layer - layers_.data()), gradients, iteration));
  }
  return factors;
}

std::vector<std::byte> DeepGradient::encode(std::span<const float> gradients,
                                            std::span<const float> parameters, const Range& chunk,
                                            Iteration iteration) {
  return encode(gradients, parameters, chunk, iteration, clip_factors(gradients, chunk, iteration));
}

std::vector<std::byte> DeepGradient::encode(std::span<const float> gradients,
                                            std::span<const float> parameters, const Range& chunk,
                                            Iteration iteration, std::span<const float> clips) {
  check(chunk.begin >= 0 && chunk.end <= std::ssize(residual_.values()) &&
            gradients.size() == residual_.values().size(),
        "the chunk lies in the model");
  const std::span<const Range> layers = layers_in(chunk);
  check(clips.size() == layers.size(), "each layer of the chunk has a factor");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Range within{std::max(layers[l].begin, chunk.begin), std::min(layers[l].end, chunk.end)};
    take_in(gradients, parameters, within, clips[l]);
  }
  const auto velocity = part(velocity_.values(), chunk);
  const auto residual = part(residual_.values(), chunk);
  const auto sent = top_k(residual, options_.entries(residual.size(), iteration));
  std::vector<std::byte> bytes = encode_sparse(residual, sent);
  for (const std::uint32_t position : sent) {
    residual[position] = 0;
    if (options_.factor_masking) {
      velocity[position] = 0;
    }
  }
  return bytes;
}

}  // namespace sluice
