#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "model/job.h"

namespace sluice {

// Which nodes of a job are still there, as far as one host has heard.
class Living {
 public:
  explicit Living(const Job& job) : topology_(job.topology), lost_(job.absent) {}

  void lose(HostId host) { lost_.push_back(host); }
  void regain(HostId host) { std::erase(lost_, host); }

  bool has(HostId host) const { return std::ranges::find(lost_, host) == lost_.end(); }
  bool has(NodeId node) const { return lost_.empty() || has(topology_.host_of(node)); }
  // How many workers are left.
  std::size_t workers() const {
    const auto has_workers = [&](HostId host) { return host.index() < topology_.worker_hosts(); };
    return topology_.workers() -
           static_cast<std::size_t>(std::ranges::count_if(lost_, has_workers)) *
               topology_.workers_per_host();
  }
  const Topology& topology() const { return topology_; }

 private:
  Topology topology_;
  std::vector<HostId> lost_;
};

}  // namespace sluice
