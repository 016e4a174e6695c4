// The arithmetic of the optimisers, a block at a time. The formulas and the order of operations are
// those of torch.optim; constants are computed in double precision as there.
#include <algorithm>
#include <array>
#include <cmath>

#include "optimizers/update_rule.h"

namespace sluice::optimizer_traits {
namespace {

constexpr std::array<std::string_view, 1> kMomentum{"momentum_buffer"};
constexpr std::array<std::string_view, 2> kMoments{"exp_avg", "exp_avg_sq"};
constexpr std::array<std::string_view, 1> kSum{"sum"};
constexpr std::array<std::string_view, 3> kMeans{"square_avg", "momentum_buffer", ""};
constexpr std::array<std::string_view, 3> kCentredMeans{"square_avg", "grad_avg",
                                                        "momentum_buffer"};

// The decaying means of the gradient and of its square, and what corrects their start at zero.
struct Moments {
  explicit Moments(const UpdateStep& of)
      : beta1(static_cast<float>(of.rule.options.beta1)),
        beta2(static_cast<float>(of.rule.options.beta2)),
        rest1(static_cast<float>(1 - of.rule.options.beta1)),
        rest2(static_cast<float>(1 - of.rule.options.beta2)),
        epsilon(static_cast<float>(of.rule.options.epsilon)),
        bias1(1 - std::pow(of.rule.options.beta1, static_cast<double>(of.iteration))),
        root_bias2(static_cast<float>(
            std::sqrt(1 - std::pow(of.rule.options.beta2, static_cast<double>(of.iteration))))) {}

  void add(float g, float& m, float& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
  }
  // To divide m by.
  float root(float v) const { return std::sqrt(v) / root_bias2 + epsilon; }

  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float epsilon;
  double bias1;
  float root_bias2;
};

// LAMB's direction before the layer's ratio: Adam's, and the weight decay.
float direction(const Moments& moments, float unbias1, float decay, float w, float m, float v) {
  return unbias1 * m / moments.root(v) + decay * w;
}

template <bool centred, bool with_momentum>
void rmsprop_of(const UpdateStep& of, std::span<float> w, const float* total,
                const StateParts& state) {
  const auto alpha = static_cast<float>(of.rule.options.alpha);
  const auto rest = static_cast<float>(1 - of.rule.options.alpha);
  const auto epsilon = static_cast<float>(of.rule.options.epsilon);
  const float momentum = of.rule.momentum;
  const auto [rate, scale, decay] = std::array{of.rate, of.scale, of.decay};
  float* square = state[0].data();
  float* mean = centred ? state[1].data() : nullptr;
  float* velocity = with_momentum ? state[centred ? 2 : 1].data() : nullptr;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float g = total[i] * scale + decay * w[i];
    square[i] = alpha * square[i] + rest * g * g;
    float variance = square[i];
    if constexpr (centred) {
      mean[i] = alpha * mean[i] + rest * g;
      variance -= mean[i] * mean[i];
    }
    float step = g / (std::sqrt(variance) + epsilon);
    if constexpr (with_momentum) {
      velocity[i] = momentum * velocity[i] + step;
      step = velocity[i];
    }
    w[i] -= rate * step;
  }
}

}  // namespace

StateNames sgd_state(const UpdateRule& rule) {
  return rule.momentum == 0 ? StateNames() : StateNames(kMomentum);
}

StateNames adam_state(const UpdateRule& /*rule*/) { return kMoments; }

StateNames adagrad_state(const UpdateRule& /*rule*/) { return kSum; }

StateNames rmsprop_state(const UpdateRule& rule) {
  const std::size_t velocities = rule.momentum == 0 ? 0 : 1;
  return rule.options.centered ? StateNames(kCentredMeans).first(2 + velocities)
                               : StateNames(kMeans).first(1 + velocities);
}

// The first gradient is not dampened.
void sgd(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state) {
  const auto [rate, scale, decay] = std::array{of.rate, of.scale, of.decay};
  const float momentum = of.rule.momentum;
  const bool first = of.iteration == 1;
  const float damped = first ? 1.0F : static_cast<float>(1 - of.rule.options.dampening);
  float* v = state[0].data();
  if (momentum == 0) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] -= rate * (total[i] * scale + decay * w[i]);
    }
  } else if (of.rule.options.nesterov) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float g = total[i] * scale + decay * w[i];
      v[i] = momentum * v[i] + damped * g;
      w[i] -= rate * (g + momentum * v[i]);
    }
  } else if (damped != 1) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float g = total[i] * scale + decay * w[i];
      v[i] = momentum * v[i] + damped * g;
      w[i] -= rate * v[i];
    }
  } else {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float g = total[i] * scale + decay * w[i];
      v[i] = momentum * v[i] + g;
      w[i] -= rate * v[i];
    }
  }
}

void adam(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state) {
  const Moments moments(of);
  const auto rate = static_cast<float>(static_cast<double>(of.rate) / moments.bias1);
  const auto [scale, decay] = std::array{of.scale, of.decay};
  float* m = state[0].data();
  float* v = state[1].data();
  for (std::size_t i = 0; i < w.size(); ++i) {
    moments.add(total[i] * scale + decay * w[i], m[i], v[i]);
    w[i] -= rate * (m[i] / moments.root(v[i]));
  }
}

void adamw(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state) {
  const Moments moments(of);
  const auto rate = static_cast<float>(static_cast<double>(of.rate) / moments.bias1);
  const float kept = 1 - of.rate * of.decay;
  const float scale = of.scale;
  float* m = state[0].data();
  float* v = state[1].data();
  for (std::size_t i = 0; i < w.size(); ++i) {
    moments.add(total[i] * scale, m[i], v[i]);
    w[i] = kept * w[i] - rate * (m[i] / moments.root(v[i]));
  }
}

void adagrad(const UpdateStep& of, std::span<float> w, const float* total,
             const StateParts& state) {
  const OptimizerOptions& options = of.rule.options;
  const auto rate =
      static_cast<float>(static_cast<double>(of.rate) /
                         (1 + static_cast<double>(of.iteration - 1) * options.lr_decay));
  const auto epsilon = static_cast<float>(options.epsilon);
  const auto [scale, decay] = std::array{of.scale, of.decay};
  float* sum = state[0].data();
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float g = total[i] * scale + decay * w[i];
    sum[i] += g * g;
    w[i] -= rate * (g / (std::sqrt(sum[i]) + epsilon));
  }
}

void rmsprop(const UpdateStep& of, std::span<float> w, const float* total,
             const StateParts& state) {
  const bool with_momentum = of.rule.momentum != 0;
  if (of.rule.options.centered) {
    with_momentum ? rmsprop_of<true, true>(of, w, total, state)
                  : rmsprop_of<true, false>(of, w, total, state);
  } else {
    with_momentum ? rmsprop_of<false, true>(of, w, total, state)
                  : rmsprop_of<false, false>(of, w, total, state);
  }
}

void lamb(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state) {
  const Moments moments(of);
  const float scale = of.scale;
  float* m = state[0].data();
  float* v = state[1].data();
  for (std::size_t i = 0; i < w.size(); ++i) {
    moments.add(total[i] * scale, m[i], v[i]);
  }
}

// The step of a layer is as long as its parameters times the learning rate.
void lamb_layer(const UpdateStep& of, std::span<float> w, const StateParts& state) {
  constexpr std::size_t kPart = 1024;
  const Moments moments(of);
  const auto unbias1 = static_cast<float>(1 / moments.bias1);
  const float* m = state[0].data();
  const float* v = state[1].data();
  std::array<float, kPart> part;
  double squares = 0;
  for (std::size_t begin = 0; begin < w.size(); begin += kPart) {
    const std::size_t count = std::min(kPart, w.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = begin + i;
      part[i] = direction(moments, unbias1, of.decay, w[at], m[at], v[at]);
    }
    squares += sum_of_squares(std::span(part).first(count));
  }
  const double length = std::sqrt(sum_of_squares(w));
  const double ratio = length > 0 && squares > 0 ? length / std::sqrt(squares) : 1;
  const auto rate = static_cast<float>(static_cast<double>(of.rate) * ratio);
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] -= rate * direction(moments, unbias1, of.decay, w[i], m[i], v[i]);
  }
}

}  // namespace sluice::optimizer_traits
