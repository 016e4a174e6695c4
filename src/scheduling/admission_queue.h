#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/heap.h"
#include "base/on_demand.h"
#include "base/slots.h"
#include "model/strategy.h"

namespace sluice {

// Decides which item enters a narrow channel next, and how much may be in the channel at a time.
//
// Items wait in the order of (urgency, arrival), or of arrival alone; the smallest value is the
// most urgent. An item is admitted while the cost of all admitted items stays within the budget. An
// item that costs more than the whole budget is admitted alone. give_back() returns costs.
//
// The channel may have lanes, each with its own budget in addition to the common one. A full lane
// delays only the items in that lane.
template <class T>
class AdmissionQueue {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  AdmissionQueue(Order order, std::int64_t budget, std::size_t lanes = 1,
                 std::int64_t lane_budget = kUnbounded)
      : order_(order), common_(budget), lanes_(lanes, Lane(lane_budget)) {}

  void push(std::uint64_t urgency, std::int64_t cost, T item, std::size_t lane = 0) {
    const Key key{order_ == Order::kPriority ? urgency : 0, next_sequence_++};
    Lane& its = lanes_[lane];
    const Waiting entry{items_.put(std::move(item)), its.arrived++, cost};
    const bool first = its.queue.empty() || key < its.queue.key();
    its.queue.push(key, entry);
    ++waiting_;
    if (first) {
      stand_for(lane);
    }
  }

  // The next item, if the budgets allow it.
  std::optional<T> take() {
    while (!heads_.empty()) {
      const std::size_t lane = heads_.value();
      Lane& its = lanes_[lane];
      const bool stale = its.queue.empty() || !(its.queue.key() == heads_.key());
      if (stale || !its.budget.admits(its.queue.value().cost)) {
        heads_.pop();
        continue;
      }
      if (!common_.admits(its.queue.value().cost)) {
        return std::nullopt;
      }
      heads_.pop();
      return admit(lane);
    }
    return std::nullopt;
  }

  void give_back(std::int64_t cost, std::size_t lane = 0) {
    common_.give_back(cost);
    lanes_[lane].budget.give_back(cost);
    stand_for(lane);
  }

  std::int64_t spent() const { return common_.spent; }
  std::size_t waiting() const { return waiting_; }
  // Items admitted before an earlier arrival in the same lane.
  std::int64_t overtakings() const { return overtakings_; }

 private:
  struct Key {
    std::uint64_t urgency;
    std::uint64_t sequence;
    auto operator<=>(const Key&) const = default;
  };
  struct Waiting {
    std::uint32_t item;
    std::uint64_t arrival;  // in its lane
    std::int64_t cost;
  };
  struct Budget {
    explicit Budget(std::int64_t limit) : limit(limit) {}
    bool admits(std::int64_t cost) const { return spent == 0 || cost <= limit - spent; }
    void give_back(std::int64_t cost) {
      check(cost <= spent, "at most the spent budget is given back");
      spent -= cost;
    }
    std::int64_t limit;
    std::int64_t spent = 0;
  };
  struct Lane {
    explicit Lane(std::int64_t limit) : budget(limit) {}
    Budget budget;
    std::uint64_t arrived = 0;
    std::uint64_t admitted = 0;
    Heap<Key, Waiting> queue;
  };

  // Enters the head of a lane into `heads_`. take() drops entries that are outdated or duplicates.
  void stand_for(std::size_t lane) {
    Lane& its = lanes_[lane];
    if (!its.queue.empty() && its.budget.admits(its.queue.value().cost)) {
      heads_.push(its.queue.key(), static_cast<std::uint32_t>(lane));
    }
  }

  T admit(std::size_t lane) {
    Lane& its = lanes_[lane];
    const Waiting entry = its.queue.value();
    its.queue.pop();
    --waiting_;
    overtakings_ += entry.arrival > its.admitted++ ? 1 : 0;
    its.budget.spent += entry.cost;
    common_.spent += entry.cost;
    stand_for(lane);
    return items_.take(entry.item);
  }

  Order order_;
  Budget common_;
  OnDemand<Lane> lanes_;
  Heap<Key, std::uint32_t> heads_;  // lanes that may be next, by their first items
  Slots<T> items_;
  std::uint64_t next_sequence_ = 0;
  std::size_t waiting_ = 0;
  std::int64_t overtakings_ = 0;
};

}  // namespace sluice
