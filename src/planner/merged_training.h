#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "partition/merge.h"
#include "planner/allreduce_cost.h"

namespace sluice {

// Chooses which layers to merge in a run, from measurements while it trains.
class MergePolicy {
 public:
  // A run of so many iterations is measured from the middle on (`iteration_us`), so its first look,
  // for which training pauses, comes well before that. A run of less than six has none.
  MergePolicy(Merge how, Iteration iterations)
      : how_(how), interval_(iterations < 6 ? kFirst : std::min(iterations / 3, kFirst)) {}

  // The iteration of the next look, after a look at `now`. The first look comes soon; later ones
  // become rarer while nothing changes.
  Iteration next_look(Iteration now) const { return now + interval_; }
  // Plans again. The groups change only if the predicted gain is more than a few per cent:
  // measurements are not exact, and two plans may be equally good. Before the first look each layer
  // is sent separately.
  void look(const Profile& profile, const StreamCost& cost);

  // The current plan with its latest predicted time; no groups before the first look.
  const MergePlan& plan() const { return plan_; }
  const StreamCost& cost() const { return cost_; }
  int replans() const { return replans_; }  // changes after the first plan

  // The result of a look, to be adopted by the policies of other processes.
  struct Decision {
    std::vector<LayerGroup> groups;
    Iteration interval = 0;  // to the next look
  };
  Decision decision() const { return {plan_.groups, interval_}; }
  void adopt(const Decision& decision);

 private:
  static constexpr Iteration kFirst = 8;
  static constexpr Iteration kUsual = 200;
  static constexpr Iteration kRarest = 3200;

  Merge how_;
  Iteration interval_;
  MergePlan plan_;
  StreamCost cost_;
  int replans_ = 0;
};

// Trains a job with partition merged, in phases. Within a phase, chunks and protocols stay the
// same; between two phases, all workers have all parameters and nothing is in flight. The first
// phase sends each layer separately; each later one uses what was measured before it.
struct MergedTraining {
  Job job;
  Iteration iterations = 0;
  // Trains with this assembly from its job's first iteration up to `last`. False if it was stopped
  // early; then the whole training ends.
  std::function<bool(Assembly assembly, Iteration last, Observer& observer)> train;
  TrainAside train_aside;
  // Returns the decision of the one process that decides for all; unset if there is only one.
  std::function<MergePolicy::Decision(const MergePolicy::Decision& own)> agree;
};

struct MergeOutcome {
  MergePolicy policy;
  Duration measured{0};  // per iteration of the last phase; 0 if that was too short to measure
};

MergeOutcome train_merged(const MergedTraining& training);

}  // namespace sluice
