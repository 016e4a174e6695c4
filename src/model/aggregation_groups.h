#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "base/quotient.h"
#include "model/job.h"

namespace sluice {

// Those who speak for the workers: every worker for itself, or, with local aggregation, the first
// of each machine for all of that machine. Where hosts are absent, every worker speaks for itself.
class AggregationGroups {
 public:
  explicit AggregationGroups(const Job& job) : AggregationGroups(job.strategy, job.topology) {
    for (const HostId host : job.absent) {
      for (std::size_t w = 0; w < job.topology.workers_per_host(); ++w) {
        absent_.push_back(host.index() * job.topology.workers_per_host() + w);
      }
    }
    check(absent_.empty() || group_ == 1, "with local aggregation no worker is absent");
    size_ -= absent_.size();
  }
  AggregationGroups(const Strategy& strategy, const Topology& topology)
      : group_(strategy.local_aggregation ? topology.workers_per_machine() : 1),
        size_(topology.workers() / group_) {}

  std::size_t size() const { return size_; }
  NodeId leader(std::size_t index) const {
    std::size_t node = index * group_;
    for (const std::size_t absent : absent_) {
      node += absent <= node ? 1 : 0;
    }
    return NodeId(node);
  }
  NodeId leader_of(NodeId worker) const {
    return NodeId(quotient(worker.index(), group_) * group_);
  }
  // Of one who is there.
  std::size_t index_of(NodeId worker) const {
    const auto before = std::ranges::lower_bound(absent_, worker.index()) - absent_.begin();
    return quotient(worker.index(), group_) - static_cast<std::size_t>(before);
  }
  std::size_t group() const { return group_; }  // workers that one speaks for

 private:
  std::size_t group_;
  std::size_t size_;
  std::vector<std::size_t> absent_;  // workers, in ascending order
};

}  // namespace sluice
