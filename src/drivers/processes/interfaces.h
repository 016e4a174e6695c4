#pragma once

#include <optional>
#include <vector>

#include "formats/survey.h"

namespace sluice {

// The interfaces of this machine that are up, by name.
std::vector<Interface> interfaces();
// The highest of their rates that are known.
std::optional<double> fastest_interface_gbps();

}  // namespace sluice
