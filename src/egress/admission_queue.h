#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/heap.h"
#include "base/slots.h"
#include "model/strategy.h"

namespace sluice {

// Decides what passes a narrow channel first, and how much may be inside it at a time.
//
// Items wait in the order of (urgency, arrival), or of arrival alone; the least value is the most
// urgent. An item is admitted while the cost of all admitted items stays within the budget; an item
// dearer than the whole budget is admitted alone. Costs come back with give_back().
template <class T>
class AdmissionQueue {
 public:
  AdmissionQueue(Order order, std::int64_t budget) : order_(order), budget_(budget) {}

  void push(std::uint64_t urgency, std::int64_t cost, T item) {
    const std::uint64_t rank = order_ == Order::kPriority ? urgency : 0;
    heap_.push({rank, next_sequence_++}, items_.put({cost, std::move(item)}));
    waiting_.push_back(true);
  }

  // The item whose turn it is, if the budget allows it.
  std::optional<T> take() {
    if (heap_.empty()) {
      return std::nullopt;
    }
    const std::uint32_t slot = heap_.value();
    const std::int64_t cost = items_[slot].cost;
    if (spent_ > 0 && spent_ + cost > budget_) {
      return std::nullopt;
    }
    note_departure(heap_.key().sequence);
    heap_.pop();
    spent_ += cost;
    ++admitted_;
    return items_.take(slot).item;
  }

  void give_back(std::int64_t cost) {
    check(cost <= spent_, "no more budget comes back than was spent");
    spent_ -= cost;
  }

  std::int64_t spent() const { return spent_; }
  std::size_t waiting() const { return static_cast<std::size_t>(next_sequence_) - admitted_; }
  // Items that were admitted before one that had come earlier.
  std::int64_t overtakings() const { return overtakings_; }

 private:
  struct Key {
    std::uint64_t rank;
    std::uint64_t sequence;

    bool operator<(const Key& other) const {
      return rank != other.rank ? rank < other.rank : sequence < other.sequence;
    }
  };
  struct Item {
    std::int64_t cost;
    T item;
  };

  // waiting_ has a flag for each item from the oldest one that still waits on.
  void note_departure(std::uint64_t sequence) {
    const std::uint64_t oldest = next_sequence_ - waiting_.size();
    overtakings_ += sequence != oldest ? 1 : 0;
    waiting_[sequence - oldest] = false;
    while (!waiting_.empty() && !waiting_.front()) {
      waiting_.pop_front();
    }
  }

  Order order_;
  std::int64_t budget_;
  std::int64_t spent_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::size_t admitted_ = 0;
  std::int64_t overtakings_ = 0;
  Heap<Key, std::uint32_t> heap_;  // of slots in items_
  Slots<Item> items_;
  std::deque<bool> waiting_;
};

}  // namespace sluice
