#include "codecs/deep_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

}  // namespace

DeepGradient::DeepGradient(const DeepGradientOptions& options, float momentum, std::size_t workers,
                           std::size_t parameters)
    : options_(options),
      momentum_(momentum),
      clip_norm_(options.clip_norm / std::sqrt(static_cast<double>(workers))),
      velocity_(parameters),
      residual_(parameters) {
  check(options.sparsity >= 0 && options.sparsity < 1, "sparsity is a share below 1");
  check(workers > 0, "there is a worker");
}

float DeepGradient::clip_factor(std::span<const float> gradient) const {
  if (!options_.clipping) {
    return 1;
  }
  const double norm = norm_of(gradient);
  return std::isfinite(norm) && norm > clip_norm_ ? static_cast<float>(clip_norm_ / norm) : 1.0F;
}

void DeepGradient::take_in(std::span<const float> gradient, std::span<float> velocity,
                           std::span<float> residual) const {
  const float factor = clip_factor(gradient);
  const float momentum = momentum_;
  const bool corrects = options_.momentum_correction;
  const bool accumulates = options_.accumulation;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float g = factor * gradient[i];
    const float v = corrects ? momentum * velocity[i] + g : g;
    velocity[i] = v;
    residual[i] = accumulates ? residual[i] + v : v;
  }
}

std::vector<std::byte> DeepGradient::encode(std::span<const float> gradient, std::size_t begin,
                                            Iteration iteration) {
  check(begin + gradient.size() <= residual_.values().size(), "the chunk lies in the model");
  const auto velocity = velocity_.values().subspan(begin, gradient.size());
  const auto residual = residual_.values().subspan(begin, gradient.size());
  take_in(gradient, velocity, residual);
  const auto sent = top_k(residual, options_.entries(gradient.size(), iteration));
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
