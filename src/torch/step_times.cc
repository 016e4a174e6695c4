#include "torch/step_times.h"

#include <algorithm>

namespace sluice {

void StepTimes::begin() {
  clock_.mark();
  marks_ = 1;
  reads_.assign(layers_, 0);
  finals_.assign(layers_, 0);
}

void StepTimes::mark(std::vector<std::size_t>& place_of, LayerId layer) {
  clock_.mark();
  place_of[layer.index()] = marks_++;
}

bool StepTimes::before_layer(LayerId layer) {
  mark(reads_, layer);
  return true;
}

void StepTimes::forward_done() {
  clock_.mark();
  forward_end_ = marks_++;
}

void StepTimes::gradient_ready(LayerId layer) { mark(finals_, layer); }

std::vector<LayerTime> StepTimes::end() {
  clock_.mark();
  const std::vector<double> at = clock_.collect();
  std::vector<LayerTime> times(layers_);
  double done = 0;  // up to this layer
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const double next = layer + 1 < layers_ ? at[reads_[layer + 1]] : at[forward_end_];
    times[layer].forward = std::max(next - done, 0.0);
    done = std::max(next, done);
  }
  done = at[forward_end_];
  for (std::size_t layer = layers_; layer-- > 0;) {
    const double final = layer > 0 ? at[finals_[layer]] : at.back();
    times[layer].backward = std::max(final - done, 0.0);
    done = std::max(final, done);
  }
  return times;
}

}  // namespace sluice
