#pragma once

#include "base/units.h"

namespace sluice {

// Real time, for what only pretends to compute. May be used by several threads at once.
class Sleeper {
 public:
  virtual ~Sleeper() = default;

  virtual Time now() const = 0;
  // Returns at once if that moment has passed.
  virtual void rest_until(Time moment) const = 0;
};

}  // namespace sluice
