#include "optimizers/update_rule.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/dot.h"

namespace sluice {
namespace {

// Long enough to amortise the outer loop, short enough for the sum to stay in the L1 cache.
constexpr std::size_t kBlock = 1024;

StateParts block_of(const StateParts& state, std::size_t begin, std::size_t count) {
  StateParts parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = state[i].empty() ? state[i] : state[i].subspan(begin, count);
  }
  return parts;
}

void clip(const float* total, float scale, float limit, std::span<float> clipped) {
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    clipped[i] = std::clamp(total[i] * scale, -limit, limit);
  }
}

}  // namespace

void UpdateRule::apply(std::span<float> parameters, const StateParts& state,
                       std::span<const std::span<const float>> sources, const BatchShare& share,
                       Iteration iteration, float factor) const {
  check(!sources.empty(), "an update needs a gradient");
  const OptimizerTraits& optimizer_traits = traits();
  const float scale = share.scale() * factor;
  const UpdateStep step{.rule = *this,
                        .rate = rate.at(iteration),
                        .scale = clip_value > 0 ? 1 : scale,
                        .decay = share.decay(weight_decay),
                        .iteration = iteration};
  std::array<float, kBlock> sum;
  for (std::size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, parameters.size() - begin);
    const float* total = sources[0].data() + begin;
    for (const auto& source : sources.subspan(1)) {
      const float* values = source.data() + begin;
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] = total[i] + values[i];
      }
      total = sum.data();
    }
    if (clip_value > 0) {
      clip(total, scale, clip_value, std::span(sum).first(count));
      total = sum.data();
    }
    optimizer_traits.step(step, parameters.subspan(begin, count), total,
                          block_of(state, begin, count));
  }
  if (optimizer_traits.conclude != nullptr) {
    optimizer_traits.conclude(step, parameters, state);
  }
}

void UpdateRule::apply_sparse(std::span<float> parameters, const StateParts& state,
                              const SparseView& sum, const BatchShare& share,
                              Iteration iteration) const {
  check(optimizer == Optimizer::kSgd && !options.nesterov, "a sparse update is one of plain SGD");
  const float step = rate.at(iteration);
  const float scale = share.scale();
  const float decay = share.decay(weight_decay);
  const std::span<float> velocity = state[0];
  for (std::size_t e = 0; e < sum.entries(); ++e) {
    const std::uint32_t i = sum.position(e);
    const float g = sum.value(e) * scale + decay * parameters[i];
    if (velocity.empty()) {
      parameters[i] -= step * g;
    } else {
      velocity[i] = momentum * velocity[i] + g;
      parameters[i] -= step * velocity[i];
    }
  }
}

float UpdateRule::clip_factor(double norm) const {
  constexpr double kNotZero = 1e-6;
  return static_cast<float>(std::min(1.0, static_cast<double>(clip_norm) / (norm + kNotZero)));
}

double sum_of_squares(std::span<const float> values) { return dot(values, values); }

}  // namespace sluice
