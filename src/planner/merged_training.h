#pragma once

#include <functional>
#include <vector>

#include "partition/merge.h"
#include "planner/allreduce_cost.h"

namespace sluice {

// Chooses the groups of layers of a run, from what is measured while it goes on.
class MergePolicy {
 public:
  explicit MergePolicy(Merge how) : how_(how) {}

  // The iteration at which to look again, after a look at `now`. The first look comes soon; later
  // ones more and more rarely while nothing changes.
  Iteration next_look(Iteration now) const { return now + interval_; }
  // Plans anew. The groups change only if that is predicted to gain more than a few per cent: a
  // measurement is not exact, and two plans may be as good as each other.
  void look(const Profile& profile, const AllReduceCost& cost);

  // The plan in force and what it was last predicted to take; no groups before the first look.
  const MergePlan& plan() const { return plan_; }
  const AllReduceCost& cost() const { return cost_; }
  int replans() const { return replans_; }  // changes after the first plan

  // What the look has decided, and the same for the policy of another process.
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
  static constexpr double kGain = 0.03;

  Merge how_;
  Iteration interval_ = kFirst;
  MergePlan plan_;
  AllReduceCost cost_;
  int replans_ = 0;
};

// Training of a job with partition merged in phases: in each, chunks and protocols stay as they
// are; between two, all workers have all parameters and nothing is in flight. The first phase
// goes layer by layer, and each of the later ones by what has been measured before it.
struct MergedTraining {
  Job job;
  Iteration iterations = 0;
  // Trains with this assembly from its job's first iteration up to `last`; false: it was stopped
  // before, and the whole training is over.
  std::function<bool(Assembly assembly, Iteration last, Observer& observer)> train;
  TrainAside train_aside;
  // What was decided by the one process that decides for all; unset if there is no other.
  std::function<MergePolicy::Decision(const MergePolicy::Decision& own)> agree;
};

struct MergeOutcome {
  MergePolicy policy;
  Duration measured{0};  // an iteration of the last phase; 0 if that was too short to tell
};

MergeOutcome train_merged(const MergedTraining& training);

}  // namespace sluice
