#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace sluice {

// That a process of a run was lost.
struct PeerLoss {
  std::size_t rank = 0;
  std::uint32_t life = 0;  // how often it had come back before
  Duration ago{0};
  std::string why;
};

}  // namespace sluice
