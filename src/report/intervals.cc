#include "report/intervals.h"

#include <algorithm>

namespace sluice {

// The first that is not over before this time. Most come nearly in order, so it is hardly ever
// searched for.
std::vector<Interval>::iterator Intervals::first_until(Time begin) {
  if (kept_.empty() || kept_.back().end < begin) {
    return kept_.end();
  }
  if (kept_.back().begin <= begin) {
    return kept_.end() - 1;
  }
  return std::ranges::lower_bound(kept_, begin, {}, &Interval::end);
}

void Intervals::add(Interval added) {
  added.begin = std::max(added.begin, floor_);
  if (added.end <= added.begin) {
    return;
  }
  const auto first = first_until(added.begin);
  auto last = first;
  for (; last != kept_.end() && last->begin <= added.end; ++last) {
    added.begin = std::min(added.begin, last->begin);
    added.end = std::max(added.end, last->end);
    total_ -= last->end - last->begin;
  }
  total_ += added.end - added.begin;
  if (first == last) {
    kept_.insert(first, added);
  } else {
    *first = added;
    kept_.erase(first + 1, last);
  }
}

void Intervals::forget(Time before) {
  floor_ = std::max(floor_, before);
  kept_.erase(kept_.begin(), std::ranges::upper_bound(kept_, floor_, {}, &Interval::end));
  if (!kept_.empty()) {
    kept_.front().begin = std::max(kept_.front().begin, floor_);
  }
}

Duration overlap(const Intervals& a, const Intervals& b, Time until) {
  Duration sum{0};
  auto x = a.kept().begin();
  auto y = b.kept().begin();
  while (x != a.kept().end() && y != b.kept().end()) {
    const Time begin = std::max(x->begin, y->begin);
    const Time end = std::min({x->end, y->end, until});
    sum += std::max(end - begin, Duration(0));
    (x->end < y->end ? x : y)++;
  }
  return sum;
}

}  // namespace sluice
