#pragma once

#include "base/units.h"

namespace sluice {

// Real time, for learners that only pretend to compute. Thread-safe.
class Sleeper {
 public:
  virtual ~Sleeper() = default;

  virtual Time now() const = 0;
  // Returns at once if the moment has passed.
  virtual void rest_until(Time moment) const = 0;
};

}  // namespace sluice
