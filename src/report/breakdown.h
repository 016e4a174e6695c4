#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "model/topology.h"
#include "protocol/observer.h"
#include "report/intervals.h"

namespace sluice {

// What workers waited for before their forward passes.
struct WaitShares {
  Duration local_aggregation{0};  // gradients were added on their own machine
  Duration aggregation{0};        // arithmetic on the awaited layer
  Duration communication{0};      // else: the worker's host was sending or receiving
  Duration others{0};             // else: another worker's gradient was missing

  Duration total() const { return local_aggregation + aggregation + communication + others; }
  WaitShares& operator+=(const WaitShares& other);
};

// Finds the cause of every wait, after the Analysis paper's Figure 3. If several overlap, the first
// in the order of WaitShares counts. Memory does not grow with the run. Waits for layers that are
// more urgent than `from` are left out.
class Breakdown final : public Observer {
 public:
  explicit Breakdown(const Topology& topology, std::uint64_t from = 0)
      : topology_(topology), from_(from), hosts_(topology.hosts()) {}

  void computed(NodeId, LayerId, Iteration, Pass, Time, Time) override {}
  void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) override;
  void sent(const Message& message, Time begin, Time end) override;
  void received(const Message& message, Time begin, Time end) override;
  void worked(const Work& work, Time begin, Time end) override;

  // Adds what another process has recorded of the waits of its workers.
  void adopt(const WaitShares& shares);
  // The sums over all workers.
  WaitShares shares() const;

 private:
  struct Wait {
    std::uint64_t urgency;  // of the awaited layer
    Interval span;
  };
  struct Host {
    Intervals traffic;
    std::deque<Wait> waits;  // whose causes may not all have been reported yet
  };
  struct Activity {
    Intervals local;
    Intervals global;
  };

  Host& host_of(NodeId node) { return hosts_[topology_.host_of(node).index()]; }
  WaitShares causes_of(const Wait& wait, const Host& host) const;

  Topology topology_;
  std::uint64_t from_;
  mutable std::mutex mutex_;
  std::vector<Host> hosts_;
  std::map<std::uint64_t, Activity> activities_;  // by the urgency of the work
  WaitShares settled_;
};

}  // namespace sluice
