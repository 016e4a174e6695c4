#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

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
      : order_(order), common_{budget}, lanes_(lanes, Lane{{lane_budget}}) {}

  void push(std::uint64_t urgency, std::int64_t cost, T item, std::size_t lane = 0) {
    const std::uint64_t rank = order_ == Order::kPriority ? urgency : 0;
    Lane& its = lanes_[lane];
    const std::uint32_t slot = items_.put(std::move(item));
    notes_.resize(std::max<std::size_t>(notes_.size(), slot + 1));
    notes_[slot] = {next_sequence_++, its.arrived++, cost, kNone};
    const bool first = its.classes.empty() || rank < its.classes.back().urgency;
    append(its.classes, rank, slot);
    ++waiting_;
    if (first) {
      stand_for(lane);
    }
  }

  // Admits an item that would be the first of all if it were pushed now. If it says no, push.
  bool admit_at_once(std::int64_t cost, std::size_t lane = 0) {
    Lane& its = lanes_[lane];
    if (waiting_ > 0 || !its.budget.admits(cost) || !common_.admits(cost)) {
      return false;
    }
    ++its.arrived;
    ++its.admitted;
    its.budget.spent += cost;
    common_.spent += cost;
    return true;
  }

  // The next item, if the budgets allow it.
  std::optional<T> take() {
    while (!heads_.empty()) {
      const std::size_t lane = heads_.value();
      Lane& its = lanes_[lane];
      if (its.classes.empty() || !(head_key(its) == heads_.key()) ||
          !its.budget.admits(head(its).cost)) {
        heads_.pop();  // outdated
        continue;
      }
      if (!common_.admits(head(its).cost)) {
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
  // About an item; apart from it, since a lane's first is looked at more often than it is taken.
  struct Note {
    std::uint64_t sequence;
    std::uint64_t arrival;  // in its lane
    std::int64_t cost;
    std::uint32_t next;  // of the same lane and urgency
  };
  // Items that are equally urgent, in the order of arrival. Few urgencies wait at a time, those of
  // one model's layers, and most arrivals belong to the most urgent of them or are more urgent.
  struct Class {
    std::uint64_t urgency;
    std::uint32_t first;
    std::uint32_t last;
  };
  struct Budget {
    bool admits(std::int64_t cost) const { return spent == 0 || cost <= limit - spent; }
    void give_back(std::int64_t cost) {
      check(cost <= spent, "at most the spent budget is given back");
      spent -= cost;
    }
    std::int64_t limit = kUnbounded;
    std::int64_t spent = 0;
  };
  struct Lane {
    Budget budget;
    std::uint64_t arrived = 0;
    std::uint64_t admitted = 0;
    std::vector<Class> classes = {};  // the most urgent is the last
  };

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void append(std::vector<Class>& classes, std::uint64_t urgency, std::uint32_t slot) {
    auto at = classes.end();
    if (!classes.empty() && classes.back().urgency <= urgency) {
      at = std::lower_bound(classes.begin(), classes.end(), urgency,
                            [](const Class& of, std::uint64_t u) { return of.urgency > u; });
    }
    if (at != classes.end() && at->urgency == urgency) {
      notes_[at->last].next = slot;
      at->last = slot;
    } else {
      classes.insert(at, {urgency, slot, slot});
    }
  }

  const Note& head(const Lane& lane) const { return notes_[lane.classes.back().first]; }
  Key head_key(const Lane& lane) const {
    return {lane.classes.back().urgency, head(lane).sequence};
  }

  // Enters the head of a lane into `heads_`. take() drops entries that are outdated or duplicates.
  void stand_for(std::size_t lane) {
    Lane& its = lanes_[lane];
    if (!its.classes.empty() && its.budget.admits(head(its).cost)) {
      heads_.push(head_key(its), static_cast<std::uint32_t>(lane));
    }
  }

  T admit(std::size_t lane) {
    Lane& its = lanes_[lane];
    Class& most_urgent = its.classes.back();
    const std::uint32_t slot = most_urgent.first;
    const Note note = notes_[slot];
    if (note.next == kNone) {
      its.classes.pop_back();
    } else {
      most_urgent.first = note.next;
    }
    --waiting_;
    overtakings_ += note.arrival > its.admitted++ ? 1 : 0;
    its.budget.spent += note.cost;
    common_.spent += note.cost;
    stand_for(lane);
    return items_.take(slot);
  }

  Order order_;
  Budget common_;
  OnDemand<Lane> lanes_;
  Heap<Key, std::uint32_t> heads_;  // lanes that may be next, by their first items
  Slots<T> items_;
  std::vector<Note> notes_;  // by slot
  std::uint64_t next_sequence_ = 0;
  std::size_t waiting_ = 0;
  std::int64_t overtakings_ = 0;
};

}  // namespace sluice
