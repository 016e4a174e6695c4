#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/id.h"
#include "learners/learner.h"

namespace sluice {

c10::Event new_event(c10::DeviceType device);

// The events of a layer in one step. Its forward pass begins when the pass has reached it and its
// parameters are on the device. Its gradient begins to leave when it is final and the one before
// it has left.
struct DeviceTrail {
  explicit DeviceTrail(c10::DeviceType device);

  c10::Event reached;  // by the forward pass
  c10::Event in_begin;
  c10::Event in_end;
  std::optional<LayerId> brought_with;  // in this step: the layer whose events these are
  c10::Event ready;                     // the gradient is final
  c10::Event out_end;
  LayerId looked_at_with;  // in this step, of local steps
};

// What a device has been given to do in one step.
struct DeviceStep {
  DeviceStep(c10::DeviceType device, std::size_t layers);

  // Forgets the last one.
  void begin(Iteration iteration);
  const c10::Event& end() const { return trails[backward_order.back().index()].out_end; }

  Iteration iteration = 0;
  std::vector<DeviceTrail> trails;  // by layer
  c10::Event forward_end;
  std::vector<LayerId> forward_order;
  std::vector<LayerId> backward_order;
  at::Tensor extremes;  // of GradientExtremes, on the host
};

// What the device did in a step that ended so long ago. `leaves` tells whether a layer was copied
// to the host.
std::vector<DeviceSpan> spans_of(const DeviceStep& step, Duration ended_ago,
                                 const std::function<bool(LayerId layer)>& leaves);

// Zero if LibTorch cannot measure it.
Duration time_between(const c10::Event& begin, const c10::Event& end);

}  // namespace sluice
