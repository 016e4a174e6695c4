#pragma once

#include <cstddef>
#include <vector>

#include "learners/learner.h"
#include "torch/layout.h"

namespace sluice {

// Turns what happens to parameters in one step into what the hooks hear of layers: every layer once
// before it is read, and once when its gradient is final. Parameters are named by their place in
// the layout.
class LayerCalls {
 public:
  LayerCalls(const Layout& layout, StepHooks& hooks);

  // May repeat; only the first read of a layer is passed on.
  void before_read(std::size_t parameter);
  // Announces the layers that the pass did not read, then the end of the pass.
  void forward_done();
  // Once a parameter.
  void gradient_final(std::size_t parameter);
  // Announces the gradients that the pass did not reach, the last layer first.
  void backward_done();

 private:
  void announce(LayerId layer);

  const Layout& layout_;
  StepHooks& hooks_;
  std::vector<bool> announced_;
  std::vector<std::size_t> missing_;  // gradients of each layer that are not final
};

}  // namespace sluice
