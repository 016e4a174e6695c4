#pragma once

#include <functional>

#include "base/result.h"
#include "formats/profile.h"
#include "torch/torch_learner.h"

// How long the layers of a task's model take for one batch. Like torch_learner.h, these functions
// exist with and without LibTorch.
namespace sluice {

// Measures steps on the task's device after a warm-up; each layer's time is the median. `seconds`
// is a clock of the host. Loading samples and zeroing gradients are not counted.
Result<Profile> measure_profile(const TorchTask& task, const std::function<double()>& seconds);

// The peak performance of a device, per second.
struct DeviceSpeed {
  double flops = 0;
  double bytes = 0;  // read from its memory or written to it
};
// Estimates the times instead: an operator takes as long as its arithmetic or its memory traffic,
// whichever is longer, and twice that in the backward pass if it needs one.
Result<Profile> estimate_profile(const TorchTask& task, const DeviceSpeed& speed);

}  // namespace sluice
