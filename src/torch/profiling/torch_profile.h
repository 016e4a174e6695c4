#pragma once

#include <functional>

#include "base/result.h"
#include "formats/profile.h"
#include "torch/torch_learner.h"

// How long the layers of a task's model take for one batch. Like torch_learner.h, seen by the rest
// of Sluice with LibTorch and without.
namespace sluice {

// Measures steps on the task's device, after some that warm up; each layer's time is the median.
// `seconds` is a clock of the host. Neither the loading of samples nor the zeroing of gradients is
// counted.
Result<Profile> measure_profile(const TorchTask& task, const std::function<double()>& seconds);

// What a device can do in a second, at most.
struct DeviceSpeed {
  double flops = 0;
  double bytes = 0;  // read from its memory or written to it
};
// Computes the times instead: every operator takes as long as its arithmetic or its memory traffic,
// whichever is longer, and twice that in the backward pass if it needs one.
Result<Profile> estimate_profile(const TorchTask& task, const DeviceSpeed& speed);

}  // namespace sluice
