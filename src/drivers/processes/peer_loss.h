#pragma once

#include <cstddef>
#include <string>

#include "base/units.h"

namespace sluice {

// That a process of a run was lost.
struct PeerLoss {
  std::size_t rank = 0;
  Time at{0};  // since the process that tells it began
  std::string why;
};

}  // namespace sluice
