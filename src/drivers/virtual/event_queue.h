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
  void ready_at(Time time, T what) { heap_.push({time, next_++}, what); }
  void free_at(Time time, T what) { heap_.push({time, next_++ | kFree}, what); }

  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.key().time; }

  T pop() {
    const T what = heap_.value();
    heap_.pop();
    return what;
  }

 private:
  struct Key {
    Time time;
    std::uint64_t order;

    bool operator<(const Key& other) const {
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  static constexpr std::uint64_t kFree = 1ULL << 63U;

  Heap<Key, T> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace sluice
