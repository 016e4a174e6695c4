#pragma once

#include <vector>

#include "learners/learner.h"
#include "torch/device_clock.h"

namespace sluice {

struct LayerTime {
  double forward = 0;  // seconds
  double backward = 0;
};

// Times the layers of a step whose hooks these are. Layers are in the order of the forward pass; a
// layer takes
//
//   forward    from its first read to that of the next layer, or to the end of the pass
//   backward   from the final gradient of the layer behind it, or from the end of the forward
//              pass, to its own
//
// What comes before the first read and after the last gradient is the first layer's, so that the
// sum is the whole step. Where branches let a gradient be final before that of a layer behind it,
// it takes no time of its own: a profile knows one order only.
class StepTimes final : public StepHooks {
 public:
  StepTimes(DeviceClock& clock, std::size_t layers) : clock_(clock), layers_(layers) {}

  void begin();
  bool before_layer(LayerId layer) override;
  void forward_done() override;
  void gradient_ready(LayerId layer) override;
  // After the step; by layer.
  std::vector<LayerTime> end();

 private:
  void mark(std::vector<std::size_t>& place_of, LayerId layer);

  DeviceClock& clock_;
  std::size_t layers_;
  // Places among the marks of the clock.
  std::size_t marks_ = 0;
  std::vector<std::size_t> reads_;
  std::vector<std::size_t> finals_;
  std::size_t forward_end_ = 0;
};

}  // namespace sluice
