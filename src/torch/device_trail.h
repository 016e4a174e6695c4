#pragma once

#include <c10/core/Event.h>

#include <functional>
#include <optional>
#include <span>
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

// What the device did in a step whose gradients have all left. Trails are by layer, and the orders
// those of the two passes. `leaves` tells whether a layer was copied to the host.
std::vector<DeviceSpan> spans_of(const std::vector<DeviceTrail>& trails,
                                 const c10::Event& forward_end,
                                 std::span<const LayerId> forward_order,
                                 std::span<const LayerId> backward_order,
                                 const std::function<bool(LayerId layer)>& leaves);

}  // namespace sluice
