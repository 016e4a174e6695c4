#pragma once

#include <algorithm>
#include <vector>

#include "base/id.h"
#include "base/quotient.h"

namespace sluice {

// Who is where. Workers are nodes 0 ... W-1, servers follow them. Host h has the workers
// h*k ... h*k+k-1; servers stand on each of these hosts, or on further hosts of their own, one or
// several on each.
class Topology {
 public:
  Topology() : Topology(1, 1, 0) {}
  // hosts_apart: 0 puts the servers beside the workers of every host; n > 0 gives them n hosts of
  // their own.
  // A machine is a host, unless several hosts are said to share one (processes, say).
  Topology(std::size_t worker_hosts, std::size_t workers_per_host, std::size_t hosts_apart,
           std::size_t hosts_per_machine = 1, std::size_t servers_per_host = 1)
      : worker_hosts_(worker_hosts),
        per_host_(workers_per_host),
        hosts_apart_(hosts_apart),
        hosts_per_machine_(hosts_per_machine),
        servers_per_host_(servers_per_host) {}

  std::size_t hosts() const { return worker_hosts_ + hosts_apart_; }
  std::size_t worker_hosts() const { return worker_hosts_; }
  std::size_t workers() const { return worker_hosts_ * per_host_; }
  std::size_t workers_per_host() const { return per_host_; }
  bool on_one_machine() const { return hosts_per_machine_ == hosts(); }
  std::size_t workers_per_machine() const {
    return per_host_ * std::min(hosts_per_machine_, worker_hosts_);
  }
  bool servers_apart() const { return hosts_apart_ > 0; }
  std::size_t server_hosts() const { return servers_apart() ? hosts_apart_ : worker_hosts_; }
  std::size_t servers_per_host() const { return servers_per_host_; }
  std::size_t servers() const { return server_hosts() * servers_per_host_; }
  std::size_t nodes() const { return workers() + servers(); }

  NodeId worker(std::size_t rank) const { return NodeId(rank); }
  NodeId server(std::size_t index) const { return NodeId(workers() + index); }
  bool is_worker(NodeId node) const { return node.index() < workers(); }
  std::size_t server_index(NodeId node) const { return node.index() - workers(); }

  HostId host_of(NodeId node) const {
    if (is_worker(node)) {
      return HostId(quotient(node.index(), per_host_));
    }
    return HostId(quotient(server_index(node), servers_per_host_) + first_server_host());
  }
  // Workers first.
  std::vector<NodeId> nodes_on(HostId host) const {
    std::vector<NodeId> here;
    const std::size_t h = host.index();
    for (std::size_t w = 0; h < worker_hosts_ && w < per_host_; ++w) {
      here.push_back(worker(h * per_host_ + w));
    }
    const std::size_t first = first_server_host();
    for (std::size_t s = 0; h >= first && h < hosts() && s < servers_per_host_; ++s) {
      here.push_back(server((h - first) * servers_per_host_ + s));
    }
    return here;
  }

 private:
  std::size_t first_server_host() const { return servers_apart() ? worker_hosts_ : 0; }

  std::size_t worker_hosts_;
  std::size_t per_host_;
  std::size_t hosts_apart_;
  std::size_t hosts_per_machine_;
  std::size_t servers_per_host_;
};

}  // namespace sluice
