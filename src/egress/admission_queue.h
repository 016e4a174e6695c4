#pragma once

#include <algorithm>
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
// Items wait in the order of (urgency, arrival), or of arrival alone; the least value is the most
// urgent. An item is admitted while the cost of all admitted items stays within the budget; an item
// dearer than the whole budget is admitted alone. Costs come back with give_back().
template <class T>
class AdmissionQueue {
 public:
  AdmissionQueue(Order order, std::int64_t budget) : order_(order), budget_(budget) {}

  void push(std::uint64_t urgency, std::int64_t cost, T item) {
    bucket_of(order_ == Order::kPriority ? urgency : 0)
        .entries.push_back({next_sequence_++, cost, std::move(item)});
    waiting_.push_back(true);
  }

  // The item whose turn it is, if the budget allows it.
  std::optional<T> take() {
    if (buckets_.empty()) {
      return std::nullopt;
    }
    Bucket& bucket = buckets_.back();
    Entry& entry = bucket.entries[bucket.head];
    if (spent_ > 0 && spent_ + entry.cost > budget_) {
      return std::nullopt;
    }
    note_departure(entry.sequence);
    spent_ += entry.cost;
    ++admitted_;
    std::optional<T> item(std::move(entry.item));
    if (++bucket.head == bucket.entries.size()) {
      retire_last();
    }
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
  // Items of equal urgency in the order of arrival; those before head have left.
  struct Bucket {
    std::uint64_t urgency = 0;
    std::size_t head = 0;
    std::vector<Entry> entries;
  };

  Bucket& bucket_of(std::uint64_t urgency) {
    const auto place =
        std::lower_bound(buckets_.begin(), buckets_.end(), urgency,
                         [](const Bucket& bucket, std::uint64_t u) { return bucket.urgency > u; });
    if (place != buckets_.end() && place->urgency == urgency) {
      return *place;
    }
    Bucket fresh;
    if (!spare_.empty()) {
      fresh = std::move(spare_.back());
      spare_.pop_back();
    }
    fresh.urgency = urgency;
    return *buckets_.insert(place, std::move(fresh));
  }

  // Keeps the memory of an empty bucket for the next one.
  void retire_last() {
    Bucket& bucket = buckets_.back();
    bucket.head = 0;
    bucket.entries.clear();
    spare_.push_back(std::move(bucket));
    buckets_.pop_back();
  }

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
  std::vector<Bucket> buckets_;  // none is empty; the most urgent is the last
  std::vector<Bucket> spare_;
  std::deque<bool> waiting_;
};

}  // namespace sluice
