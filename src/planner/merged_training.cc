#include "planner/merged_training.h"

#include <algorithm>

#include "planner/layer_times.h"

namespace sluice {

void MergePolicy::look(const Profile& profile, const StreamCost& cost) {
  const bool first = plan_.groups.empty();
  cost_ = cost;
  if (first) {
    plan_ = separate_layers(profile, cost);
  }
  plan_.iteration = streamed_iteration(profile, cost, plan_.groups);
  MergePlan best = merge_if_faster(profile, cost, how_, kMergeGain);
  const bool changes = to_seconds(best.iteration) < (1 - kMergeGain) * to_seconds(plan_.iteration);
  if (changes) {
    plan_ = std::move(best);
    replans_ += first ? 0 : 1;
  }
  interval_ = changes || first ? kUsual : std::min(2 * interval_, kRarest);
}

void MergePolicy::adopt(const Decision& decision) {
  plan_.groups = decision.groups;
  interval_ = decision.interval;
}

MergeOutcome train_merged(const MergedTraining& training) {
  Job job = training.job;
  MergeOutcome outcome{MergePolicy(job.strategy.merge, training.iterations)};
  while (job.first < training.iterations) {
    const Iteration last = std::min(outcome.policy.next_look(job.first), training.iterations);
    LayerTimes times(job.topology.workers(), job.layers.size());
    const bool goes_on = training.train(assemble(job), last, times);
    outcome.measured = times.iteration();
    if (!goes_on) {
      return outcome;
    }
    if (last < training.iterations) {
      outcome.policy.look(times.profile(job.layers), measured_allreduce(job, training.train_aside));
      if (training.agree) {
        outcome.policy.adopt(training.agree(outcome.policy.decision()));
      }
      job.groups = outcome.policy.plan().groups;
    }
    job.first = last;
  }
  return outcome;
}

}  // namespace sluice
