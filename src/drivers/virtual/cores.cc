#include "drivers/virtual/cores.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// Rounding errors of sums in double; far below anything that is measured.
constexpr double kNothingPs = 0.5;

}  // namespace

std::optional<Due> Cores::take_finished(HostId id, Time now) {
  Host& host = running_[id.index()];
  if (now < host.next || host.tasks.empty()) {
    return std::nullopt;  // outdated: something has begun since, or ended
  }
  progress(host, now);
  const auto over =
      std::ranges::find_if(host.tasks, [](const Task& task) { return task.left_ps <= kNothingPs; });
  if (over == host.tasks.end()) {
    expect_next(id, host, now);
    return std::nullopt;
  }
  const Due what = over->what;
  host.tasks.erase(over);
  host.threads = 0;
  for (const Task& task : host.tasks) {
    host.threads += task.threads;
  }
  return what;
}

void Cores::progress(Host& host, Time now) const {
  const double done = static_cast<double>((now - host.since).count()) * speed(host);
  for (Task& task : host.tasks) {
    task.left_ps -= done;
  }
  host.since = now;
}

void Cores::expect_next(HostId id, Host& host, Time now) {
  if (host.tasks.empty()) {
    return;
  }
  const auto first =
      std::ranges::min_element(host.tasks, {}, [](const Task& task) { return task.left_ps; });
  const Time next = now + from_ps(std::ceil(std::max(first->left_ps, 0.0) / speed(host)));
  if (next != host.next || next == now) {
    host.next = next;
    due_.ready_at(next, {Due::Kind::kCoresFree, static_cast<std::uint32_t>(id.index())});
  }
}

}  // namespace sluice
