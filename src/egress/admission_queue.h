#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/strategy.h"

namespace sluice {

// Decides what passes a narrow channel first, and how much may be inside it at a time.
//
// Items wait in the order of (priority, arrival), or of arrival alone. An item is admitted while
// the cost of all admitted items stays within the budget; an item dearer than the whole budget is
// admitted alone. Costs come back with give_back().
template <class T>
class AdmissionQueue {
 public:
  AdmissionQueue(Order order, std::int64_t budget) : order_(order), budget_(budget) {}

  void push(std::uint32_t priority, std::int64_t cost, T item) {
    const std::size_t bucket = order_ == Order::kPriority ? priority : 0;
    if (bucket >= buckets_.size()) {
      buckets_.resize(bucket + 1);
    }
    buckets_[bucket].push_back({next_sequence_++, cost, std::move(item)});
    first_ = std::min(first_, bucket);
    waiting_.push_back(true);
  }

  // The item whose turn it is, if the budget allows it.
  std::optional<T> take() {
    while (first_ < buckets_.size() && buckets_[first_].empty()) {
      ++first_;
    }
    if (first_ >= buckets_.size()) {
      return std::nullopt;
    }
    Entry& entry = buckets_[first_].front();
    if (spent_ > 0 && spent_ + entry.cost > budget_) {
      return std::nullopt;
    }
    note_departure(entry.sequence);
    spent_ += entry.cost;
    ++admitted_;
    std::optional<T> item(std::move(entry.item));
    buckets_[first_].pop_front();
    return item;
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
  struct Entry {
    std::uint64_t sequence;
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
  std::size_t first_ = 0;  // no bucket before this one has an item
  std::vector<std::deque<Entry>> buckets_;
  std::deque<bool> waiting_;
};

}  // namespace sluice
