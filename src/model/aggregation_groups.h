#pragma once

#include "model/job.h"

namespace sluice {

// Those who speak for the workers: every worker for itself, or, with local aggregation, the first
// of each machine for all of that machine.
class AggregationGroups {
 public:
  explicit AggregationGroups(const Job& job) : AggregationGroups(job.strategy, job.topology) {}
  AggregationGroups(const Strategy& strategy, const Topology& topology)
      : group_(strategy.local_aggregation ? topology.workers_per_machine() : 1),
        size_(topology.workers() / group_) {}

  std::size_t size() const { return size_; }
  NodeId leader(std::size_t index) const { return NodeId(index * group_); }
  NodeId leader_of(NodeId worker) const { return leader(index_of(worker)); }
  std::size_t index_of(NodeId worker) const { return worker.index() / group_; }
  std::size_t group() const { return group_; }  // workers that one speaks for

 private:
  std::size_t group_;
  std::size_t size_;
};

}  // namespace sluice
