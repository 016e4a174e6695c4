#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/range.h"
#include "base/zeroed_buffer.h"
#include "model/cadence.h"
#include "optimizers/optimizer_state.h"
#include "optimizers/update_rule.h"
#include "state/remembered.h"

namespace sluice {

// A worker's copy of the global parameters, and the optimiser that moves them. If all workers make
// the same steps with the same sums, their copies are equal. Calls for different ranges may
// overlap.
class OuterState {
 public:
  // The global parameters begin as these.
  OuterState(const Cadence& cadence, std::span<const float> parameters)
      : pull_(static_cast<float>(cadence.pull)),
        rule_{.rate = {.base = static_cast<float>(cadence.rate)},
              .momentum =
                  cadence.outer == Outer::kNesterov ? static_cast<float>(cadence.momentum) : 0.0F,
              .options = {.nesterov = cadence.outer == Outer::kNesterov}},
        state_(rule_, parameters.size()),
        velocity_(parameters.size()),
        global_(parameters.size()) {
    std::ranges::copy(parameters, global_.values().begin());
  }

  std::span<const float> global() const { return global_.values(); }
  // All of its state.
  std::vector<Remembered> remembered() const {
    std::vector<Remembered> all{{"global", {global_.values()}},
                                {"outer.pair_velocity", {velocity_.values()}}};
    for (const auto& [name, values] : state_.buffers()) {
      all.push_back({"outer." + std::string(name), {values.values()}});
    }
    return all;
  }

  // How far these parameters of the range are from the global ones.
  void find_gradient(const Range& range, std::span<const float> parameters,
                     std::span<float> gradient) const {
    std::ranges::transform(of(range), parameters, gradient.begin(), std::minus<>());
  }
  // Moves the global parameters by the mean of these gradients, given their sum.
  void step(const Range& range, std::span<const float> sum, std::size_t workers,
            Iteration iteration) {
    rule_.apply(of(range), state_.part(range), {&sum, 1}, BatchShare::all(workers), iteration);
  }
  // NoLoCo: moves them by the mean of this gradient and the partner's, with momentum, and towards
  // the mean of both workers' global parameters. `partner` has its gradient, then its global
  // parameters; it is empty if there is none.
  //
  //   velocity <- momentum * velocity - rate * mean gradient + pull * (mean global - global)
  //   global   <- global + velocity
  void step_in_pair(const Range& range, std::span<const float> gradient,
                    std::span<const float> partner) {
    const std::span<float> global = of(range);
    const std::span<float> velocity = velocity_.values().subspan(
        static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
    const float rate = rule_.rate.base;
    for (std::size_t i = 0; i < global.size(); ++i) {
      float moved = rule_.momentum * velocity[i];
      if (partner.empty()) {
        moved -= rate * gradient[i];
      } else {
        moved -= rate * (0.5F * (gradient[i] + partner[i]));
        moved += pull_ * (0.5F * (partner[global.size() + i] - global[i]));
      }
      velocity[i] = moved;
      global[i] += moved;
    }
  }
  // Has the global parameters follow a replica.
  void follow(const Range& range, std::span<const float> parameters) {
    std::ranges::copy(parameters, of(range).begin());
  }
  // parameters <- keep * parameters + (1 - keep) * global parameters
  void take_over(const Range& range, float keep, std::span<float> parameters) const {
    const std::span<const float> global = of(range);
    if (keep == 0) {
      std::ranges::copy(global, parameters.begin());
      return;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] = keep * parameters[i] + (1 - keep) * global[i];
    }
  }

 private:
  std::span<float> of(const Range& range) const {
    return global_.values().subspan(static_cast<std::size_t>(range.begin),
                                    static_cast<std::size_t>(range.size()));
  }

  float pull_;
  UpdateRule rule_;
  OptimizerState state_;
  ZeroedBuffer velocity_;  // of steps in pairs
  ZeroedBuffer global_;
};

}  // namespace sluice
