#pragma once

#include <functional>
#include <string>

#include "report/progress.h"

namespace sluice {

// Where a run reports its progress. The caller of a session provides it, so that the library needs
// no logger; by default reports are dropped. Both may be called from several threads at once.
struct Log {
  std::function<void(const std::string&)> info = [](const std::string&) {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  Progress* progress = nullptr;  // shows the steps of the leader, one call at a time
  // This process leads from now on: what it reports is for the user.
  std::function<void()> lead = [] {};
};

}  // namespace sluice
