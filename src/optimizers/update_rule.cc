#include "optimizers/update_rule.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace sluice {
namespace {

// Long enough to amortise the outer loop, short enough for the sum to stay in the L1 cache.
constexpr std::size_t kBlock = 1024;

}  // namespace

float RateSchedule::at(Iteration iteration) const {
  float rate = base;
  if (iteration <= warmup) {
    const float risen = static_cast<float>(iteration - 1) / static_cast<float>(warmup);
    rate *= warmup_from + (1 - warmup_from) * risen;
  }
  for (const Iteration drop : drops) {
    rate *= iteration > drop ? 0.1F : 1.0F;
  }
  return rate;
}

void UpdateRule::apply(std::span<float> parameters, std::span<float> velocity,
                       std::span<const std::span<const float>> sources, const BatchShare& share,
                       Iteration iteration) const {
  check(!sources.empty(), "an update needs a gradient");
  const float step = rate.at(iteration);
  const float scale = share.scale();
  const float decay = share.decay(weight_decay);
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
    float* w = parameters.data() + begin;
    float* v = velocity.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      const float g = total[i] * scale + decay * w[i];
      v[i] = momentum * v[i] + g;
      w[i] -= step * v[i];
    }
  }
}

void UpdateRule::apply_sparse(std::span<float> parameters, std::span<float> velocity,
                              const SparseView& sum, const BatchShare& share,
                              Iteration iteration) const {
  const float step = rate.at(iteration);
  const float scale = share.scale();
  const float decay = share.decay(weight_decay);
  for (std::size_t e = 0; e < sum.entries(); ++e) {
    const std::uint32_t i = sum.position(e);
    const float g = sum.value(e) * scale + decay * parameters[i];
    velocity[i] = momentum * velocity[i] + g;
    parameters[i] -= step * velocity[i];
  }
}

}  // namespace sluice
