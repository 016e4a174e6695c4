#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/enum_set.h"
#include "model/names.h"

namespace sluice {

struct UpdateRule;
struct UpdateStep;

// A new optimiser is a value here, its row in kOptimizers, its arithmetic in optimizers/kernels.cc
// and, if accelerators are to know it, a case in torch/device_update.cc.
enum class Optimizer : std::uint8_t {
  kSgd,
  kAdam,
  kAdamW,
  kAdagrad,
  kRmsprop,
  kLamb,
  kCount,  // none: how many there are
};

// The hyper-parameters that only some optimisers have. All have a learning rate and a weight decay.
enum class Hyper : std::uint8_t {
  kMomentum,
  kDampening,
  kNesterov,
  kBeta1,
  kBeta2,
  kEpsilon,
  kAlpha,
  kCentered,
  kLrDecay,
};

// Named as in torch.optim.
struct OptimizerOptions {
  double dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double alpha = 0.99;
  bool centered = false;
  double lr_decay = 0;

  bool operator==(const OptimizerOptions&) const = default;
};

inline constexpr std::size_t kMaxStateBuffers = 3;

// What an optimiser remembers of each parameter, in the order of its buffers.
using StateNames = std::span<const std::string_view>;
using StateParts = std::array<std::span<float>, kMaxStateBuffers>;

// What the rest of Sluice has to know about an optimiser.
struct OptimizerTraits {
  Optimizer value;
  std::string_view name;
  EnumSet<Hyper> takes;
  // The defaults of torch.optim; those of SGD are Sluice's and depend on the preset.
  double learning_rate;
  double momentum;
  double weight_decay;
  OptimizerOptions options;
  // An update with a share of the gradients is that share of the update.
  bool linear;
  // An update needs the gradient of whole layers.
  bool whole_layers;
  StateNames (*state)(const UpdateRule&);
  // Updates a block; the spans have equal lengths, and `total` is the sum of the gradients.
  void (*step)(const UpdateStep&, std::span<float> parameters, const float* total,
               const StateParts& state);
  // If it needs whole layers: called for the layer after step() has seen all of its blocks.
  void (*conclude)(const UpdateStep&, std::span<float> parameters, const StateParts& state);
};

namespace optimizer_traits {

StateNames sgd_state(const UpdateRule& rule);
StateNames adam_state(const UpdateRule&);
StateNames adagrad_state(const UpdateRule&);
StateNames rmsprop_state(const UpdateRule& rule);

void sgd(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void adam(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void adamw(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void adagrad(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void rmsprop(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void lamb(const UpdateStep& of, std::span<float> w, const float* total, const StateParts& state);
void lamb_layer(const UpdateStep& of, std::span<float> w, const StateParts& state);

}  // namespace optimizer_traits

inline constexpr std::array kOptimizers{
    OptimizerTraits{.value = Optimizer::kSgd,
                    .name = "sgd",
                    .takes = {Hyper::kMomentum, Hyper::kDampening, Hyper::kNesterov},
                    .learning_rate = 0.05,
                    .momentum = 0.9,
                    .weight_decay = 0,
                    .options = {},
                    .linear = true,
                    .whole_layers = false,
                    .state = optimizer_traits::sgd_state,
                    .step = optimizer_traits::sgd,
                    .conclude = nullptr},
    OptimizerTraits{.value = Optimizer::kAdam,
                    .name = "adam",
                    .takes = {Hyper::kBeta1, Hyper::kBeta2, Hyper::kEpsilon},
                    .learning_rate = 1e-3,
                    .momentum = 0,
                    .weight_decay = 0,
                    .options = {},
                    .linear = false,
                    .whole_layers = false,
                    .state = optimizer_traits::adam_state,
                    .step = optimizer_traits::adam,
                    .conclude = nullptr},
    OptimizerTraits{.value = Optimizer::kAdamW,
                    .name = "adamw",
                    .takes = {Hyper::kBeta1, Hyper::kBeta2, Hyper::kEpsilon},
                    .learning_rate = 1e-3,
                    .momentum = 0,
                    .weight_decay = 1e-2,
                    .options = {},
                    .linear = false,
                    .whole_layers = false,
                    .state = optimizer_traits::adam_state,
                    .step = optimizer_traits::adamw,
                    .conclude = nullptr},
    OptimizerTraits{.value = Optimizer::kAdagrad,
                    .name = "adagrad",
                    .takes = {Hyper::kEpsilon, Hyper::kLrDecay},
                    .learning_rate = 1e-2,
                    .momentum = 0,
                    .weight_decay = 0,
                    .options = {.epsilon = 1e-10},
                    .linear = false,
                    .whole_layers = false,
                    .state = optimizer_traits::adagrad_state,
                    .step = optimizer_traits::adagrad,
                    .conclude = nullptr},
    OptimizerTraits{.value = Optimizer::kRmsprop,
                    .name = "rmsprop",
                    .takes = {Hyper::kMomentum, Hyper::kEpsilon, Hyper::kAlpha, Hyper::kCentered},
                    .learning_rate = 1e-2,
                    .momentum = 0,
                    .weight_decay = 0,
                    .options = {},
                    .linear = false,
                    .whole_layers = false,
                    .state = optimizer_traits::rmsprop_state,
                    .step = optimizer_traits::rmsprop,
                    .conclude = nullptr},
    // You et al., "Large batch optimization for deep learning"; torch.optim has none.
    OptimizerTraits{.value = Optimizer::kLamb,
                    .name = "lamb",
                    .takes = {Hyper::kBeta1, Hyper::kBeta2, Hyper::kEpsilon},
                    .learning_rate = 1e-3,
                    .momentum = 0,
                    .weight_decay = 1e-2,
                    .options = {.epsilon = 1e-6},
                    .linear = false,
                    .whole_layers = true,
                    .state = optimizer_traits::adam_state,
                    .step = optimizer_traits::lamb,
                    .conclude = optimizer_traits::lamb_layer},
};
static_assert(has_all_values(kOptimizers), "each optimiser has one row, in the order of the enum");

inline constexpr std::array kOptimizerNames = names_in(kOptimizers);

constexpr const OptimizerTraits& traits_of(Optimizer optimizer) {
  return kOptimizers[static_cast<std::size_t>(optimizer)];
}

}  // namespace sluice
