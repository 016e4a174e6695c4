#pragma once

#include "base/units.h"

namespace sluice {

// Where one thread sleeps that must wake up for more than the calls of other threads.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Returns after wake(), also one since the last sleep, when what the alarm watches calls for
  // attention, or after this time. It may return for no reason.
  virtual void sleep(Duration limit) = 0;
  // Any thread may call it.
  virtual void wake() = 0;
};

}  // namespace sluice
