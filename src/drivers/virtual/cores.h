#pragma once

#include <optional>
#include <vector>

#include "base/id.h"
#include "base/units.h"
#include "drivers/virtual/due.h"

namespace sluice {

// The cores of every host. What runs on a host at the same time shares them evenly, as under an
// operating system: if the threads that run want more cores than there are, all of them progress
// by that much more slowly. With 0 cores nothing is charged to them, and all run at full speed.
class Cores {
 public:
  Cores(double cores, std::size_t hosts, DueQueue& due)
      : cores_(cores), running_(cores > 0 ? hosts : 0), due_(due) {}

  // Makes `what` happen when this has run for `length` on `threads` cores of its own, which may be
  // a fraction. A run that needs no core is never slowed down.
  void run(HostId host, Due what, Duration length, double threads, Time now) {
    if (cores_ == 0 || threads == 0) {
      return due_.ready_at(now + length, what);
    }
    Host& on = running_[host.index()];
    progress(on, now);
    on.tasks.push_back({what, static_cast<double>(length.count()), threads});
    on.threads += threads;
    expect_next(host, on, now);
  }

  // What runs on the host does not progress for so long from now on.
  void pause(HostId host, Duration length) {
    if (cores_ > 0) {
      running_[host.index()].since += length;
    }
  }

  // What is over now, one at a time. Call after kCoresFree for this host until there is none.
  std::optional<Due> take_finished(HostId host, Time now);

 private:
  struct Task {
    Due what;
    double left_ps;  // at full speed
    double threads;
  };
  struct Host {
    std::vector<Task> tasks;
    double threads = 0;  // wanted by all of them
    Time since{0};       // when `left_ps` was true
    Time next{-1};       // the end that is expected; other events are outdated
  };

  double speed(const Host& host) const {
    return host.threads > cores_ ? cores_ / host.threads : 1.0;
  }
  void progress(Host& host, Time now) const;
  void expect_next(HostId id, Host& host, Time now);

  double cores_;
  std::vector<Host> running_;
  DueQueue& due_;
};

}  // namespace sluice
