#include "nodes/local_sum.h"

#include <utility>

#include "partition/about.h"

namespace sluice {

LocalSum::LocalSum(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : others_(AggregationGroups(job).group() - 1),
      strategy_(job.strategy),
      self_(self),
      chunks_(std::move(chunks)),
      sums_(others_ > 0 ? chunks_->size() * job.strategy.gradient_slots() : 0) {
  for (Sum& sum : sums_) {
    sum.lent.resize(others_);
  }
}

LocalSum::Sum& LocalSum::sum_of(ChunkId chunk, Iteration iteration) {
  return sums_[chunk.index() * strategy_.gradient_slots() + strategy_.gradient_slot(iteration)];
}

bool LocalSum::on_own(ChunkId chunk, Iteration iteration, Effects& effects) {
  if (others_ == 0) {
    return true;
  }
  sum_of(chunk, iteration).own = true;
  return go_on(chunk, iteration, effects);
}

bool LocalSum::on_lent(const Received& gradient, Effects& effects) {
  const Message& message = gradient.message;
  const std::size_t place = message.from.index() - self_.index() - 1;
  sum_of(message.chunk, message.iteration).lent.at(place) = gradient.payload;
  return go_on(message.chunk, message.iteration, effects);
}

bool LocalSum::on_added(const Finished& event, Effects& effects) {
  const Work& work = event.work;
  Sum& sum = sum_of(work.chunk, work.iteration);
  sum.adding = false;
  ++sum.added;
  return go_on(work.chunk, work.iteration, effects);
}

bool LocalSum::go_on(ChunkId chunk, Iteration iteration, Effects& effects) {
  Sum& sum = sum_of(chunk, iteration);
  if (sum.added == others_) {
    sum.own = false;
    sum.added = 0;
    return true;
  }
  Payload& next = sum.lent[sum.added];
  if (!sum.own || sum.adding || next.size() == 0) {
    return false;
  }
  Work add = work_on(*chunks_, chunk, WorkKind::kReduce, self_, iteration);
  add.origin = NodeId(self_.index() + 1 + sum.added);
  add.slot = strategy_.gradient_slot(iteration);
  add.sources.push_back(std::exchange(next, {}));
  sum.adding = true;
  effects.start(std::move(add));
  return false;
}

}  // namespace sluice
