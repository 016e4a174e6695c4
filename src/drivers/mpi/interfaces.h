#pragma once

#include <vector>

#include "formats/survey.h"

namespace sluice {

// The interfaces of this machine that are up, by name.
std::vector<Interface> interfaces();

}  // namespace sluice
