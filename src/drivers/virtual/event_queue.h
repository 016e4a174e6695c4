#pragma once

#include <cstdint>

#include "base/heap.h"
#include "base/units.h"

namespace sluice {

// Scheduled events in the order of (time, class, sequence). At one instant, what becomes ready
// comes before what becomes free, so that a free channel chooses among everything that is ready;
// within a class the order is that of scheduling. T is small and trivially copyable.
template <class T>
class EventQueue {
 public:
  // A place in the order.
  struct Key {
    Time time;
    std::uint64_t order;

    // Without a branch, which nobody could predict.
    bool operator<(const Key& other) const {
      return static_cast<bool>(int{time < other.time} |
                               (int{time == other.time} & int{order < other.order}));
    }
  };

  void ready_at(Time time, T what) { schedule(reserve_ready(time), what); }
  void free_at(Time time, T what) { schedule({time, next_++ | kFree}, what); }

  // Scheduling in two steps: takes the place now, and schedules the event later, but in time. So
  // of events whose order is known only the first needs to be here.
  Key reserve_ready(Time time) { return {time, next_++}; }
  void schedule(const Key& key, T what) { heap_.push(key, what); }

  bool empty() const { return heap_.empty(); }
  Time next_time() { return heap_.key().time; }

  T pop() {
    const T what = heap_.value();
    heap_.pop();
    return what;
  }

 private:
  static constexpr std::uint64_t kFree = 1ULL << 63U;

  Heap<Key, T> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace sluice
