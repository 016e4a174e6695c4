#pragma once

#include <cstddef>
#include <vector>

#include "learners/learner.h"
#include "torch/layout.h"

namespace sluice {

// Turns the events of parameters in one step into calls of the hooks for layers: each layer once
// before it is read, and once when its gradient is final. Parameters are given by their index in
// the layout.
class LayerCalls {
 public:
  LayerCalls(const Layout& layout, StepHooks& hooks);

  // May be called repeatedly; only the first read of a layer reaches the hooks.
  void before_read(std::size_t parameter);
  // Reports the layers that the pass did not read.
  void all_read();
  // The same, unless all_read() did, then the end of the pass.
  void forward_done();
  // Once per parameter.
  void gradient_final(std::size_t parameter);
  // Reports the gradients that the pass did not reach, the last layer first.
  void backward_done();

 private:
  void announce(LayerId layer);

  const Layout& layout_;
  StepHooks& hooks_;
  std::vector<bool> announced_;
  std::vector<std::size_t> missing_;  // per layer: gradients that are not final
};

}  // namespace sluice
