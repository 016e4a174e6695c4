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

constexpr std::array kWarmUpSparsity{0.75, 0.9375, 0.984375, 0.996};

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

double DeepGradientOptions::sparsity_at(std::int64_t epoch) const {
  if (!warm_up || epoch >= std::ssize(kWarmUpSparsity)) {
    return sparsity;
  }
  return std::min(sparsity, kWarmUpSparsity.at(static_cast<std::size_t>(epoch)));
}

std::size_t DeepGradientOptions::entries(std::size_t count, std::int64_t epoch) const {
  const double share = 1 - sparsity_at(epoch);
  const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(count)));
  return std::clamp<std::size_t>(wanted, std::min<std::size_t>(count, 1), count);
}

DeepGradient::DeepGradient(const DeepGradientOptions& options, std::size_t parameters)
    : options_(options), velocity_(parameters), residual_(parameters) {
  check(options.sparsity >= 0 && options.sparsity < 1, "sparsity is a share below 1");
  check(options.workers > 0, "there is a worker");
}

float DeepGradient::clip_factor(std::span<const float> gradient) const {
  if (!options_.clipping) {
    return 1;
  }
  const double norm = norm_of(gradient);
  const double limit = options_.clip_norm / std::sqrt(static_cast<double>(options_.workers));
  return std::isfinite(norm) && norm > limit ? static_cast<float>(limit / norm) : 1.0F;
}

void DeepGradient::take_in(std::span<const float> gradient, std::span<float> velocity,
                           std::span<float> residual) const {
  const float factor = clip_factor(gradient);
  const float momentum = options_.momentum;
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
                                            std::int64_t epoch) {
  check(begin + gradient.size() <= residual_.size(), "the chunk lies in the model");
  const auto velocity = std::span(velocity_).subspan(begin, gradient.size());
  const auto residual = std::span(residual_).subspan(begin, gradient.size());
  take_in(gradient, velocity, residual);
  const auto sent = top_k(residual, options_.entries(gradient.size(), epoch));
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
