#pragma once

#include <cstddef>

#include "base/units.h"

namespace sluice {

// The processor time, user and system, that all threads of this process have used so far.
Duration processor_time();

// An environment variable of the processes in a lab: how many emulated hosts share the machine.
inline constexpr const char* kLabHosts = "SLUICE_LAB_HOSTS";

// The cores that this process may run on; at least 1. A launcher or a container may have bound it
// to a part of the machine, and a host of a lab has its share of the cores.
std::size_t usable_cores();
// Likewise if so many processes share the machine: its share of all cores, but not more than it may
// use.
std::size_t usable_cores(std::size_t processes);

// How many cores this process gets when it wants all that it may use: all of them, a part of them
// where other processes want them at the same time, or a quota. Keeps them busy for `length`.
double measured_cores(Duration length);

}  // namespace sluice
