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
#include "base/prefetch.h"
#include "base/slots.h"
#include "base/zeroed_buffer.h"
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
//
// All items wait in one line. Who comes to its front while his lane is full steps aside and waits
// in a line of that lane; so a lane costs next to nothing while it has room.
template <class T>
class AdmissionQueue {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  AdmissionQueue(Order order, std::int64_t budget, std::size_t lanes = 1,
                 std::int64_t lane_budget = kUnbounded)
      : order_(order), budget_(budget), lane_budget_(lane_budget), lanes_(lanes) {
    check(aside_.claim() == kNoLine, "no lane has the first line");
  }

  void push(std::uint64_t urgency, std::int64_t cost, T item, std::size_t lane = 0) {
    const std::uint64_t rank = order_ == Order::kPriority ? urgency : 0;
    const std::uint32_t slot = entries_.claim();
    Entry& entry = entries_[slot];
    entry.sequence = next_sequence_++;
    entry.cost = cost;
    entry.arrival = lanes_[lane].arrived++;
    entry.lane = static_cast<std::uint32_t>(lane);
    entry.next = kNone;
    entry.item = std::move(item);
    append(line_, rank, slot);
    cheapest_ = waiting_ == 0 ? cost : std::min(cheapest_, cost);
    ++waiting_;
  }

  // Admits an item that would be the first of all if it were pushed now. If it says no, push.
  bool admit_at_once(std::int64_t cost, std::size_t lane = 0) {
    Lane& its = lanes_[lane];
    if (waiting_ > 0 || !has_room(its, cost) || !has_room(cost)) {
      return false;
    }
    ++its.arrived;
    ++its.admitted;
    its.spent += cost;
    spent_ += cost;
    return true;
  }

  // The next item, if the budgets allow it.
  std::optional<T> take() {
    T* const item = next();
    return item == nullptr ? std::nullopt : std::optional<T>(std::move(*item));
  }

  // The same without moving the item: it stays where it is until the next push. Null if there is
  // none.
  T* next() {
    while (waiting_ > 0 && has_room(cheapest_)) {
      drop_outdated_heads();
      if (!heads_.empty() && (line_.empty() || heads_.key() < first_key(line_))) {
        const std::uint32_t lane = heads_.value();
        Lane& its = lanes_[lane];
        if (!has_room(first(aside_[its.aside]).cost)) {
          return nullptr;
        }
        heads_.pop();
        T* const item = admit(its, aside_[its.aside]);
        close_if_empty(its);
        stand_for(lane);
        return item;
      }
      if (line_.empty()) {
        break;
      }
      const Entry& waiting = first(line_);
      Lane& its = lanes_[waiting.lane];
      if (!has_room(its, waiting.cost) || has_before(its, first_key(line_))) {
        step_aside(its);
      } else if (!has_room(waiting.cost)) {
        return nullptr;
      } else {
        return admit(its, line_);
      }
    }
    return nullptr;
  }

  void give_back(std::int64_t cost, std::size_t lane = 0) {
    Lane& its = lanes_[lane];
    check(cost <= spent_ && cost <= its.spent, "at most the spent budget is given back");
    spent_ -= cost;
    its.spent -= cost;
    stand_for(static_cast<std::uint32_t>(lane));
  }

  // Removes all that waits in the lane, and gives back what it has spent.
  void clear(std::size_t lane) {
    Lane& its = lanes_[lane];
    if (its.aside != kNoLine) {
      remove(aside_[its.aside], lane);
      aside_.free(std::exchange(its.aside, kNoLine));
    }
    remove(line_, lane);
    spent_ -= std::exchange(its.spent, 0);
    its.admitted = its.arrived;  // nobody is left to be overtaken
  }

  std::int64_t spent() const { return spent_; }
  std::size_t waiting() const { return waiting_; }
  // Items admitted before an earlier arrival in the same lane.
  std::int64_t overtakings() const { return overtakings_; }
  // Counts only overtakings by items of at least this urgency's value.
  void count_from(std::uint64_t urgency) { counted_from_ = urgency; }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNoLine = 0;  // so that a new lane is zero

  struct Key {
    std::uint64_t urgency;
    std::uint64_t sequence;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::uint64_t sequence;
    std::int64_t cost;
    std::uint32_t arrival;  // in its lane
    std::uint32_t lane;
    std::uint32_t next;       // of the same line and urgency
    std::uint32_t next_lane;  // that of the next
    T item;
  };
  // Items that are equally urgent, in the order of arrival.
  struct Class {
    std::uint64_t urgency;
    std::uint32_t first;
    std::uint32_t last;
  };
  // The most urgent class is the last. There are few, those of one model's layers, and most
  // arrivals belong to the most urgent of them or are more urgent.
  using Line = std::vector<Class>;
  // A host has a lane for every peer, so lanes are small.
  struct Lane {
    std::int64_t spent;
    std::uint32_t arrived;  // these two may wrap around
    std::uint32_t admitted;
    std::uint32_t aside;  // the line of those who stepped aside, if there are any
  };

  static bool fits(std::int64_t cost, std::int64_t spent, std::int64_t limit) {
    return spent == 0 || cost <= limit - spent;
  }
  bool has_room(std::int64_t cost) const { return fits(cost, spent_, budget_); }
  bool has_room(const Lane& lane, std::int64_t cost) const {
    return fits(cost, lane.spent, lane_budget_);
  }

  const Entry& first(const Line& line) const { return entries_[line.back().first]; }
  Key first_key(const Line& line) const { return {line.back().urgency, first(line).sequence}; }
  bool has_before(const Lane& lane, const Key& key) const {
    return lane.aside != kNoLine && first_key(aside_[lane.aside]) < key;
  }

  void append(Line& line, std::uint64_t urgency, std::uint32_t slot) {
    auto at = line.end();
    if (!line.empty() && line.back().urgency <= urgency) {
      at = std::lower_bound(line.begin(), line.end(), urgency,
                            [](const Class& of, std::uint64_t u) { return of.urgency > u; });
    }
    if (at != line.end() && at->urgency == urgency) {
      entries_[at->last].next = slot;
      entries_[at->last].next_lane = entries_[slot].lane;
      at->last = slot;
    } else {
      line.insert(at, {urgency, slot, slot});
    }
  }

  std::uint32_t remove_first(Line& line) {
    Class& most_urgent = line.back();
    const std::uint32_t slot = most_urgent.first;
    const std::uint32_t next = std::exchange(entries_[slot].next, kNone);
    if (next == kNone) {
      line.pop_back();
    } else {
      most_urgent.first = next;
      entries_.prefetch(next);
      prefetch(&lanes_[entries_[slot].next_lane], sizeof(Lane));
    }
    return slot;
  }

  void remove(Line& line, std::size_t lane) {
    for (const Class& of : std::exchange(line, {})) {
      for (std::uint32_t slot = of.first; slot != kNone;) {
        const std::uint32_t next = std::exchange(entries_[slot].next, kNone);
        if (entries_[slot].lane == lane) {
          entries_.take(slot);
          --waiting_;
        } else {
          append(line, of.urgency, slot);
        }
        slot = next;
      }
    }
  }

  void step_aside(Lane& its) {
    const std::uint64_t urgency = line_.back().urgency;
    if (its.aside == kNoLine) {
      its.aside = aside_.claim();
    }
    append(aside_[its.aside], urgency, remove_first(line_));
  }

  void close_if_empty(Lane& its) {
    if (aside_[its.aside].empty()) {
      aside_.free(std::exchange(its.aside, kNoLine));
    }
  }

  // Enters the first of those who stepped aside into `heads_`, if their lane has room for it.
  void stand_for(std::uint32_t lane) {
    const Lane& its = lanes_[lane];
    if (its.aside == kNoLine || !has_room(its, cheapest_)) {
      return;
    }
    const Line& line = aside_[its.aside];
    if (has_room(its, first(line).cost)) {
      heads_.push(first_key(line), lane);
    }
  }

  // An entry is outdated if another has become the first in its lane, or the lane has filled up.
  void drop_outdated_heads() {
    while (!heads_.empty()) {
      const Lane& its = lanes_[heads_.value()];
      if (its.aside != kNoLine && first_key(aside_[its.aside]) == heads_.key() &&
          has_room(its, first(aside_[its.aside]).cost)) {
        return;
      }
      heads_.pop();
    }
  }

  T* admit(Lane& its, Line& from) {
    const bool counted = from.back().urgency >= counted_from_;
    const std::uint32_t slot = remove_first(from);
    Entry& entry = entries_[slot];
    --waiting_;
    const bool overtakes = static_cast<std::int32_t>(entry.arrival - its.admitted++) > 0;
    overtakings_ += overtakes && counted ? 1 : 0;
    its.spent += entry.cost;
    spent_ += entry.cost;
    entries_.free(slot);
    return &entry.item;
  }

  Order order_;
  std::int64_t budget_;
  std::int64_t lane_budget_;
  std::int64_t spent_ = 0;
  ZeroedArray<Lane> lanes_;
  Slots<Entry> entries_;
  Line line_;
  Slots<Line> aside_;
  Heap<Key, std::uint32_t> heads_;  // lanes with room for the first who stepped aside, and others
  std::uint64_t next_sequence_ = 0;
  std::size_t waiting_ = 0;
  // Nothing that waits costs less. Most channels are full most of the time, and this tells so
  // without a look at an item, which is hardly ever in the cache.
  std::int64_t cheapest_ = 0;
  std::int64_t overtakings_ = 0;
  std::uint64_t counted_from_ = 0;
};

}  // namespace sluice
