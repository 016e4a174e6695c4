#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "base/units.h"

namespace sluice {

// The state of a training run after a step. Epochs and steps count from 1.
struct ProgressState {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  std::int64_t step = 0;  // over all epochs
  std::int64_t steps = 0;
  std::optional<double> loss;            // none: not shown
  std::int64_t samples = 0;              // seen so far, by all workers
  Time now{0};                           // since the start of training
  std::optional<Time> virtual_now = {};  // in a simulated run, the time there
};

// "epoch 2/5  step 120/468  loss 0.4123  3210 samples/s  ETA 0:42". The rate and the time left come
// from the mean so far.
std::string render_progress(const ProgressState& state);

// Shows progress: a line that is redrawn on a terminal, or else a new line from time to time.
class Progress {
 public:
  enum class Style : bool { kPlain, kTerminal };

  // A live line is cut to the width of the terminal.
  Progress(std::ostream& out, Style style, std::size_t width = 80)
      : out_(out), style_(style), width_(width) {}

  // Call it after every step; most calls print nothing.
  void update(const ProgressState& state);
  // Ends the line at its last state, if there was one.
  void finish();

 private:
  bool is_due() const;
  void show();

  std::ostream& out_;
  Style style_;
  std::size_t width_;
  ProgressState latest_;
  ProgressState shown_;  // step 0: nothing was shown yet
};

}  // namespace sluice
