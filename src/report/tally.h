#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/topology.h"
#include "protocol/observer.h"
#include "report/intervals.h"

namespace sluice {

struct Traffic {
  std::int64_t messages = 0;
  Bytes bytes = 0;  // of payload

  Traffic& operator+=(const Traffic& other);
  bool operator==(const Traffic&) const = default;
};
using TrafficByKind = std::array<Traffic, kMessageKinds>;  // indexed by MessageKind

struct WorkerTally {
  Duration compute{0};  // sum over layers, forward and backward
  Duration waited{0};   // exposed communication
  Duration steady_compute{0};
};

// Let C be the time in which the host communicated: the union of its outgoing messages, its
// incoming messages, and its arithmetic on gradients and parameters. Let K be the time in which at
// least one of its workers computed. What lies in both was hidden behind compute.
struct HostTally {
  Duration egress_busy{0};    // union of the outgoing messages
  Duration ingress_busy{0};   // union of the incoming messages
  Duration work{0};           // sum over all work, which may overlap
  Duration norms{0};          // of this, norms that the updates wait for
  Duration communication{0};  // |C|
  Duration hidden{0};         // |C and K|
  Duration steady_hidden{0};  // of this, behind compute of the steady iterations
  Duration copies{0};         // union of the copies to and from accelerators
  Duration copies_hidden{0};  // of these, in K
  TrafficByKind sent{};
};

// Adds up what a run does. Memory does not grow with the run: only the latest intervals of a host
// are kept. A span counts in full unless it is reported so late that max_intervals / 2 gaps in the
// host's activity lie after its beginning. Iterations from `steady_from` on are the steady ones.
class Tally : public Observer {
 public:
  explicit Tally(const Topology& topology, Iteration steady_from = 0,
                 std::size_t max_intervals = 8192);

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override;
  void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) override;
  void copied(NodeId worker, LayerId layer, Iteration iteration, Passage passage, Time begin,
              Time end) override;
  void sent(const Message& message, Time begin, Time end) override;
  void received(const Message& message, Time begin, Time end) override;
  void worked(const Work& work, Time begin, Time end) override;

  WorkerTally worker(std::size_t rank) const;
  HostTally host(HostId host) const;
  TrafficByKind sent_by_kind() const;
  // report() writes what is known of a host and its workers as text; adopt() adds it to the tally
  // of another process, which has seen nothing of that host.
  std::string report(HostId host) const;
  void adopt(HostId host, const std::string& report);

 private:
  struct Host {
    mutable std::mutex mutex;
    TrafficByKind sent{};
    Duration work{0};
    Duration norms{0};
    Duration settled_hidden{0};
    Duration settled_steady{0};  // of settled_hidden, in the steady iterations
    Duration settled_copies{0};
    Intervals egress;
    Intervals ingress;
    Intervals communication;
    Intervals compute;
    Intervals steady_compute;
    Intervals copies;
    std::vector<WorkerTally> workers;
    std::vector<Time> computed_until;  // of each worker; a worker's spans come in order
    std::optional<HostTally> adopted;  // from a report; replaces all the above but the workers
  };

  Host& host_of(NodeId node) { return hosts_[topology_.host_of(node).index()]; }
  void communicate(Host& host, Interval span);
  // Settles the overlap of C and K as far as both are known, and forgets that time.
  void settle(Host& host) const;

  Topology topology_;
  Iteration steady_from_;
  std::size_t max_intervals_;
  std::vector<Host> hosts_;
};

}  // namespace sluice
