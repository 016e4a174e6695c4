#include "model/deep_gradient_options.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice {
namespace {

constexpr std::array kWarmUpSparsity{0.75, 0.9375, 0.984375, 0.996};  // by epoch

}  // namespace

double DeepGradientOptions::sparsity_at(Iteration iteration) const {
  const bool warming = warm_up && epoch_iterations > 0;
  const Iteration epoch =
      warming ? (iteration - 1) / epoch_iterations : std::ssize(kWarmUpSparsity);
  return epoch < std::ssize(kWarmUpSparsity)
             ? std::min(sparsity, kWarmUpSparsity.at(static_cast<std::size_t>(epoch)))
             : sparsity;
}

std::size_t DeepGradientOptions::entries(std::size_t count, Iteration iteration) const {
  const double share = 1 - sparsity_at(iteration);
  const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(count)));
  return std::clamp<std::size_t>(wanted, std::min<std::size_t>(count, 1), count);
}

double DeepGradientSender::clip_norm(const DeepGradientOptions& options) const {
  return options.clip_norm * static_cast<double>(group) * std::sqrt(static_cast<double>(senders));
}

}  // namespace sluice
