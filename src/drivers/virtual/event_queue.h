#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/heap.h"
#include "base/units.h"

namespace sluice {

// Scheduled events in the order of (time, class, sequence). At one instant, what becomes ready
// comes before what becomes free, so that a free channel chooses among everything that is ready;
// within a class the order is that of scheduling. T is small and trivially copyable.
//
// A heap has a few events, those that come on the day on which they are scheduled, and those of a
// time that the calendar does not reach. All others lie unsorted on a page of the calendar, which
// is sorted when its day begins: so an event hardly costs more if there are many, and it is known
// ahead what comes next.
template <class T>
class EventQueue {
 public:
  // A place in the order.
  struct Key {
    Time time;  // from 0
    std::uint64_t order;

    // Without a branch, which nobody could predict.
    bool operator<(const Key& other) const { return as_number() < other.as_number(); }

   private:
    __extension__ using Number = unsigned __int128;
    Number as_number() const {
      return static_cast<Number>(static_cast<std::uint64_t>(time.count())) << 64U | order;
    }
  };

  EventQueue() { pages_.fill(kNone); }

  void ready_at(Time time, T what) { schedule(reserve_ready(time), what); }
  void free_at(Time time, T what) { schedule({time, next_++ | kFree}, what); }

  // Scheduling in two steps: takes the place now, and schedules the event later, but in time. So
  // of events whose order is known only the first needs to be here.
  Key reserve_ready(Time time) { return {time, next_++}; }
  void schedule(const Key& key, T what) {
    const std::int64_t day = day_of(key);
    if (day <= today_ && (at_ == sorted_.size() || sorted_.back().key < key)) {
      sorted_.push_back({key, what});
    } else if (day <= today_ || day - today_ >= kDays || heap_.size() < kFew) {
      heap_.push(key, what);
    } else {
      enter(day, {key, what});
    }
  }

  bool empty() const { return at_ == sorted_.size() && heap_.empty() && entered_ == 0; }
  // These want an event.
  Time next_time() { return heap_is_next() ? heap_.key().time : sorted_[at_].key.time; }
  T pop() {
    if (!heap_is_next()) {
      return sorted_[at_++].what;
    }
    const T what = heap_.value();
    today_ = std::max(today_, day_of(heap_.key()));
    heap_.pop();
    return what;
  }
  // What comes so many events after the next one, unless others come before it; null if that is not
  // known yet.
  const T* ahead(std::size_t events) const {
    return at_ + events < sorted_.size() ? &sorted_[at_ + events].what : nullptr;
  }

 private:
  struct Entry {
    Key key;
    T what;
  };
  struct Line {
    Entry entry;
    std::uint32_t next;  // of its page, or of those that are free
  };

  static constexpr std::uint64_t kFree = 1ULL << 63U;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr int kDayBits = 25;  // 34 us: a packet takes microseconds, a layer milliseconds
  static constexpr std::int64_t kDays = 4096;
  static constexpr std::int64_t kWord = 64;
  static constexpr std::size_t kFew = 16;

  static std::int64_t day_of(const Key& key) { return key.time.count() >> kDayBits; }
  static std::size_t page_of(std::int64_t day) { return static_cast<std::size_t>(day % kDays); }

  bool heap_is_next() {
    if (at_ == sorted_.size()) {
      sorted_.clear();
      at_ = 0;
      if (entered_ == 0) {
        return true;
      }
      begin_day();
    }
    return at_ == sorted_.size() || (!heap_.empty() && heap_.key() < sorted_[at_].key);
  }

  void enter(std::int64_t day, const Entry& entry) {
    std::uint32_t line = free_;
    if (line == kNone) {
      line = static_cast<std::uint32_t>(lines_.size());
      lines_.emplace_back();
    } else {
      free_ = lines_[line].next;
    }
    const std::size_t page = page_of(day);
    lines_[line] = {entry, pages_[page]};
    pages_[page] = line;
    filled_[page / kWord] |= 1ULL << (page % kWord);
    ++entered_;
  }

  // Of those in the calendar, which has some.
  std::int64_t first_day() const {
    for (std::int64_t day = today_ + 1;;) {
      const std::size_t page = page_of(day);
      const std::uint64_t rest = filled_[page / kWord] >> (page % kWord);
      if (rest != 0) {
        return day + std::countr_zero(rest);
      }
      day += kWord - day % kWord;
    }
  }

  // Unless the heap has something for an earlier one.
  void begin_day() {
    const std::int64_t day = first_day();
    if (!heap_.empty() && day_of(heap_.key()) < day) {
      return;
    }
    today_ = day;
    const std::size_t page = page_of(day);
    for (std::uint32_t line = pages_[page]; line != kNone;) {
      sorted_.push_back(lines_[line].entry);
      const std::uint32_t next = lines_[line].next;
      lines_[line].next = free_;
      free_ = line;
      line = next;
    }
    entered_ -= sorted_.size();
    pages_[page] = kNone;
    filled_[page / kWord] &= ~(1ULL << (page % kWord));
    std::reverse(sorted_.begin(), sorted_.end());  // the order of scheduling: most are sorted then
    const auto earlier = [](const Entry& a, const Entry& b) { return a.key < b.key; };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), earlier)) {
      std::sort(sorted_.begin(), sorted_.end(), earlier);
    }
  }

  std::uint64_t next_ = 0;
  std::int64_t today_ = 0;
  std::vector<Entry> sorted_;  // those of today's page, and what comes after them today
  std::size_t at_ = 0;         // the first of them that has not happened
  Heap<Key, T> heap_;
  std::array<std::uint32_t, kDays> pages_;  // by day modulo kDays: the last line
  std::array<std::uint64_t, kDays / kWord> filled_{};
  std::vector<Line> lines_;
  std::uint32_t free_ = kNone;
  std::size_t entered_ = 0;
};

}  // namespace sluice
