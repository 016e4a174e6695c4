#pragma once

#include <vector>

#include "learners/learner.h"
#include "torch/device_clock.h"

namespace sluice {

struct LayerTime {
  double forward = 0;  // seconds
  double backward = 0;
};

// Hooks of a step that time its layers. Layers are in the order of the forward pass. A layer takes
//
//   forward    from its first read to that of the next layer, or to the end of the pass
//   backward   from the final gradient of the next layer, or from the end of the forward pass, to
//              its own
//
// The time before the first read and after the last gradient counts for the first layer, so that
// the sum is the whole step. If, because of branches, a gradient is final before that of a later
// layer, its backward time is zero: a profile has only one order.
class StepTimes final : public StepHooks {
 public:
  StepTimes(DeviceClock& clock, std::size_t layers) : clock_(clock), layers_(layers) {}

  void begin();
  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  // Call it after the step. By layer.
  std::vector<LayerTime> end();

 private:
  void mark(std::vector<std::size_t>& place_of, LayerId layer);

  DeviceClock& clock_;
  std::size_t layers_;
  // Indices of the clock's marks.
  std::size_t marks_ = 0;
  std::vector<std::size_t> reads_;
  std::vector<std::size_t> finals_;
  std::size_t forward_end_ = 0;
};

}  // namespace sluice
