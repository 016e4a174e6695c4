#pragma once

#include <functional>
#include <string>

namespace sluice {

// Where a run reports what it does. Whoever starts the run chooses the sink, so that the library
// needs no logger of its own; by default reports go nowhere. Both may be
// called from several threads at once.
struct Log {
  std::function<void(const std::string&)> info = [](const std::string&) {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

}  // namespace sluice
