#pragma once

#include <span>
#include <vector>

#include "base/units.h"

namespace sluice {

// Half-open: [begin, end).
struct Interval {
  Time begin{0};
  Time end{0};

  bool operator==(const Interval&) const = default;
};

// The union of intervals, which may overlap and come in any order. Fast if they come nearly in
// order of time. Old ones can be forgotten, so that memory stays bounded.
class Intervals {
 public:
  void add(Interval added);
  // The length of the union of all intervals ever added.
  Duration total() const { return total_; }
  // Disjoint and ascending; two neighbours do not touch.
  std::span<const Interval> kept() const { return kept_; }
  // From now on only time from `before` on is kept, and counts when it is added.
  void forget(Time before);

 private:
  std::vector<Interval>::iterator first_until(Time begin);

  std::vector<Interval> kept_;
  Time floor_ = Time::min();
  Duration total_{0};
};

// How much of the time before `until` lies in both, as far as they keep it.
Duration overlap(const Intervals& a, const Intervals& b, Time until = Time::max());

}  // namespace sluice
