#include "report/breakdown.h"

#include <algorithm>

namespace sluice {
namespace {

// A span is reported when it is over, which may be after the wait that it caused.
constexpr std::size_t kUnsettledWaits = 64;
// Other hosts may still wait for something this much older than what one host has settled.
constexpr std::uint64_t kKept = urgency(16, 0);

// How much more of the window the union covers with these.
Duration cover(Intervals& covered, const Intervals& by, const Interval& window) {
  const Duration before = covered.total();
  const auto spans = by.kept();
  auto span =
      std::lower_bound(spans.begin(), spans.end(), window.begin,
                       [](const Interval& interval, Time begin) { return interval.end <= begin; });
  for (; span != spans.end() && span->begin < window.end; ++span) {
    covered.add({std::max(span->begin, window.begin), std::min(span->end, window.end)});
  }
  return covered.total() - before;
}

}  // namespace

WaitShares& WaitShares::operator+=(const WaitShares& other) {
  local_aggregation += other.local_aggregation;
  aggregation += other.aggregation;
  communication += other.communication;
  others += other.others;
  return *this;
}

void Breakdown::waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) {
  const std::scoped_lock lock(mutex_);
  Host& host = host_of(worker);
  const auto priority = static_cast<std::uint32_t>(layer.index());
  host.waits.push_back({urgency(iteration, priority), {begin, end}});
  if (host.waits.size() > kUnsettledWaits) {
    const Wait oldest = host.waits.front();
    host.waits.pop_front();
    settled_ += causes_of(oldest, host);
    host.traffic.forget(std::min(oldest.span.begin, host.waits.front().span.begin));
    const std::uint64_t kept = std::max(oldest.urgency, kKept) - kKept;
    activities_.erase(activities_.begin(), activities_.lower_bound(kept));
  }
}

void Breakdown::sent(const Message& message, Time begin, Time end) {
  const std::scoped_lock lock(mutex_);
  host_of(message.from).traffic.add({begin, end});
}

void Breakdown::received(const Message& message, Time begin, Time end) {
  const std::scoped_lock lock(mutex_);
  host_of(message.to).traffic.add({begin, end});
}

void Breakdown::worked(const Work& work, Time begin, Time end) {
  const std::scoped_lock lock(mutex_);
  Activity& activity = activities_[urgency(work.iteration, work.priority)];
  const bool local = work.kind == WorkKind::kReduce && work.origin != work.node;
  (local ? activity.local : activity.global).add({begin, end});
}

WaitShares Breakdown::causes_of(const Wait& wait, const Host& host) const {
  WaitShares shares;
  if (wait.urgency < from_) {
    return shares;
  }
  Intervals covered;
  if (const auto activity = activities_.find(wait.urgency); activity != activities_.end()) {
    shares.local_aggregation = cover(covered, activity->second.local, wait.span);
    shares.aggregation = cover(covered, activity->second.global, wait.span);
  }
  shares.communication = cover(covered, host.traffic, wait.span);
  shares.others = (wait.span.end - wait.span.begin) - covered.total();
  return shares;
}

void Breakdown::adopt(const WaitShares& shares) {
  const std::scoped_lock lock(mutex_);
  settled_ += shares;
}

WaitShares Breakdown::shares() const {
  const std::scoped_lock lock(mutex_);
  WaitShares shares = settled_;
  for (const Host& host : hosts_) {
    for (const Wait& wait : host.waits) {
      shares += causes_of(wait, host);
    }
  }
  return shares;
}

}  // namespace sluice
