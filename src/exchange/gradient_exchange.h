#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/open_learner.h"
#include "exchange/participant.h"
#include "exchange/recording.h"
#include "planner/tuning.h"
#include "protocol/counters.h"

namespace sluice {

// Gradients of layers go in, and their sums over all processes come back, layer by layer, while the
// program computes. The number of steps is open. The program updates its parameters itself.
//
// A step: for each layer wait() for the sum of the step before and use it; then write the next
// gradient in its place and call gradient_ready(). After all layers, end_step(). A participant may
// have several exchanges, which do not wait for each other.
//
// Calls come from one thread at a time, which need not always be the same.
class GradientExchange {
 public:
  struct Options {
    std::string preset = "p3";
    bool half_precision = false;         // gradients travel as 16 bits each
    std::optional<Strategy> strategy{};  // instead of the preset's
    ChosenSizes chosen{};                // of that strategy
    bool chose_partition = false;        // its partition is the program's choice
    bool joins_layers = true;            // tiny neighbours travel as one
    RecordingSpec record{};              // written by Participant::leave()
    // Makes memory for the gradients, filled with zeros; empty: ordinary memory.
    std::function<std::shared_ptr<float[]>(std::size_t floats)> allocate{};
  };

  // Collective. The layers are in the order of the forward pass, and the same in all processes.
  // Throws std::invalid_argument for what cannot be exchanged, and for a run folder that is in use.
  GradientExchange(Participant& participant, const Options& options,
                   const std::vector<std::string>& names, const std::vector<std::int64_t>& sizes);
  ~GradientExchange();  // as end()
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  bool is_alone() const { return participant_.size() == 1; }
  const std::vector<Layer>& layers() const { return learner().layers(); }
  // Gradients, then sums, of all layers side by side.
  std::span<float> gradients() { return learner().gradients(); }

  void gradient_ready(std::size_t layer);
  void end_step(std::optional<double> loss = {});  // of this process, for the record
  // While it waits it does `work`, on this thread, whenever sums of other layers have come.
  void wait(std::size_t layer, const std::function<void()>& work = {});
  bool is_here(std::size_t layer);  // whether wait() would return at once

  // For the times in the record: the forward pass comes to a layer, before it waits for it; it is
  // over.
  bool is_recorded() const { return recording_ != nullptr; }
  void enter(std::size_t layer);
  void forward_done();

  // There will be no more steps: ends the one that has begun, if any. All processes end after the
  // same number of steps, but need not wait for each other. The sums of the last one still come.
  void end();
  // The exchange fails in this process, and so ends all of them. From any thread.
  void fail(std::exception_ptr why);

  std::int64_t steps() const { return steps_; }
  // Of this process, so far.
  Counters counters();

 private:
  struct Memory;

  OpenLearner& learner() const;
  bool in_step() const;
  void join_layers();
  std::function<void(const StepReport&)> on_step(bool leads) const;
  void begin(ProcessGroup& group);

  Participant& participant_;
  std::shared_ptr<Memory> memory_;        // of the phase, which may outlive this
  std::shared_ptr<Recording> recording_;  // null: none is wanted
  OpenSteps* steps_of_phase_ = nullptr;   // null: this process is alone, or it has ended
  std::int64_t steps_ = 0;                // taken
  std::vector<bool> reported_;            // by layer, in this step
};

// The names of the presets that can do it.
std::vector<std::string> exchange_presets();

}  // namespace sluice
