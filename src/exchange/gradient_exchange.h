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
#include "state/remembered.h"

namespace sluice {

// Gradients of layers go in, and their sums over all processes come back, layer by layer, while the
// program computes. The number of steps is open. The program updates its parameters itself.
//
// A step: for each layer wait() for the sum of the step before and use it; then write the next
// gradient in its place and call gradient_ready(). After all layers, end_step(). A participant may
// have several exchanges, which do not wait for each other.
//
// With algorithm local-steps the program updates with gradients of its own, and what travels is how
// far that has led. Then a step is: wait() for each layer that takes_over(), which is in
// parameters(); update all layers; for each one wait(), have it in parameters() if it gives(), and
// call gradient_ready(). After all layers, end_step().
//
// Calls come from one thread at a time, which need not always be the same.
class GradientExchange {
 public:
  struct Options {
    std::string preset = "p3";
    Codec codec = Codec::kNone;          // a dense one, of what travels
    std::optional<Strategy> strategy{};  // instead of the preset's with this codec
    ChosenSizes chosen{};                // of that strategy
    bool chose_partition = false;        // its partition is the program's choice
    bool joins_layers = true;            // tiny neighbours travel as one
    RecordingSpec record{};              // written by Participant::leave()
    // Makes memory for the gradients, filled with zeros; empty: ordinary memory.
    std::function<std::shared_ptr<float[]>(std::size_t floats)> allocate{};
    // Only with a strategy of algorithm local-steps, which needs it: writes the parameters with
    // which all processes begin.
    std::function<void(std::span<float> parameters)> begin_with{};
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

  // Algorithm local-steps. Whether the layer's parameters after the step that is being taken are
  // needed; whether those that it goes on with are not its own, once wait() has returned.
  bool steps_locally() const;
  bool gives(std::size_t layer) const;
  bool takes_over(std::size_t layer) const;
  std::span<float> parameters() { return learner().parameters(); }
  // Likewise, after wait() for all layers: what the outer steps have made. Valid until the next
  // gradient_ready().
  std::span<const float> global_parameters();
  // Likewise: all that later steps depend on besides. Waits for sums that are on their way.
  std::vector<Remembered> remembered();
  // Likewise. Collective, before the first step: so many have been taken before, by a program that
  // has kept what remembered() gave, and puts it back when it gets the same from here.
  using Restore = std::function<void(std::span<const Remembered>)>;
  void go_on_after(std::int64_t steps, const Restore& restore);

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
  bool has_phase() const { return !is_alone() || steps_locally(); }
  void join_layers();
  std::function<void(const StepReport&)> on_step(bool leads) const;
  void tune(ProcessGroup& group);
  void begin(ProcessGroup& group, const Restore& restore);
  Workspace& workspace() const;
  bool sums_are_here() const;

  Participant& participant_;
  std::shared_ptr<Memory> memory_;        // of the phase, which may outlive this
  std::shared_ptr<Recording> recording_;  // null: none is wanted
  OpenSteps* steps_of_phase_ = nullptr;   // null: there is no phase, or it has ended
  std::int64_t steps_ = 0;                // taken
  std::vector<bool> reported_;            // by layer, in this step
};

}  // namespace sluice
