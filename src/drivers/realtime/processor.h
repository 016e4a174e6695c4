#pragma once

#include "base/units.h"

namespace sluice {

// The processor time, user and system, that all threads of this process have used so far.
Duration processor_time();

// How many cores this process gets when it wants all that it may use: all of them, a part of them
// where other processes want them at the same time, or a quota. Keeps them busy for `length`.
double measured_cores(Duration length);

}  // namespace sluice
