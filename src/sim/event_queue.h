#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"

namespace sluice {

// What is due when, in the order of (time, class, sequence). At one instant, what becomes ready
// comes before what becomes free, so that a free channel chooses among all that is ready; within a
// class the order is that of scheduling. T is small and trivially copyable.
template <class T>
class EventQueue {
 public:
  void ready_at(Time time, T what) { push(time, next_++, what); }
  void free_at(Time time, T what) { push(time, next_++ | kFree, what); }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.front().time; }

  T pop() {
    const T what = heap_.front().what;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      sink(last);
    }
    return what;
  }

 private:
  struct Entry {
    Time time;
    std::uint64_t order;
    T what;

    bool before(const Entry& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  static constexpr std::uint64_t kFree = 1ULL << 63U;
  static constexpr std::size_t kArity = 4;  // shallower than a binary heap, and one cache line wide

  void push(Time time, std::uint64_t order, T what) {
    const Entry entry{time, order, what};
    std::size_t hole = heap_.size();
    heap_.push_back(entry);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kArity;
      if (!entry.before(heap_[parent])) {
        break;
      }
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  // Moves the hole at the root down to where `entry` belongs.
  void sink(const Entry& entry) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * kArity + 1;
      if (first >= size) {
        break;
      }
      std::size_t least = first;
      const std::size_t end = first + kArity < size ? first + kArity : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child].before(heap_[least])) {
          least = child;
        }
      }
      if (!heap_[least].before(entry)) {
        break;
      }
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = entry;
  }

  std::vector<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace sluice
