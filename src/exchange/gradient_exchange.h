#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/open_learner.h"
#include "exchange/participant.h"
#include "model/job.h"
#include "protocol/counters.h"

namespace sluice {

// Gradients of layers go in, and their sums over all processes come back, layer by layer, while the
// program computes. The number of steps is open. The program updates its parameters itself.
//
// A step: for each layer wait() for the sum of the step before and use it; then write the next
// gradient in its place and call gradient_ready(). After all layers, end_step(). A participant may
// have several exchanges, but only one of them has a phase at a time: a gradient of another one
// waits for all sums of the first.
//
// Calls come from one thread at a time, which need not always be the same.
class GradientExchange {
 public:
  struct Options {
    std::string preset = "p3";
    bool half_precision = false;  // gradients travel as 16 bits each
  };

  // Collective. The layers are in the order of the forward pass, and the same in all processes.
  GradientExchange(Participant& participant, const Options& options,
                   const std::vector<std::string>& names, const std::vector<std::int64_t>& sizes);
  // Ends the step, if one has begun, and pauses.
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  bool is_alone() const { return participant_.size() == 1; }
  const std::vector<Layer>& layers() const { return learner().layers(); }
  // Gradients, then sums, of all layers side by side.
  std::span<float> gradients() { return learner().gradients(); }

  void gradient_ready(std::size_t layer);
  void end_step();
  void wait(std::size_t layer);
  bool is_here(std::size_t layer);  // whether wait() would return at once

  // Returns when all sums are here and nothing is in flight. Between two steps, else it throws;
  // collective, but the participant's collective calls do it, too.
  void pause();
  // The running phase fails in this process, and so ends all of them. From any thread.
  void fail(std::exception_ptr why);

  std::int64_t steps() const { return steps_; }
  // Of this process, up to the last pause.
  const Counters& counters() const { return counters_; }

 private:
  OpenLearner& learner() const { return static_cast<OpenLearner&>(*learners_.front()); }
  void begin();
  bool in_step() const;
  void train(ProcessGroup& group);

  Participant& participant_;
  std::vector<std::unique_ptr<Learner>> learners_;  // one
  Job job_;
  bool tuned_ = false;
  OpenSteps* steps_of_phase_ = nullptr;  // null: no phase is running
  std::int64_t steps_ = 0;               // taken
  std::vector<bool> reported_;           // by layer, in this step
  Counters counters_;
};

// The names of the presets that can do it.
std::vector<std::string> exchange_presets();

}  // namespace sluice
