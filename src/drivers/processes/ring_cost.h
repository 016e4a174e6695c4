#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "model/job.h"

namespace sluice {

// All processes in a ring: each sends to the next one and receives from the previous one.
struct Ring {
  // Both at once, as many bytes.
  std::function<void(std::span<const std::byte> out, std::span<std::byte> in)> turn;
  // The highest value of all processes.
  std::function<double(double own)> slowest;
};

// The cost of a message in a ring. All processes call this.
LinkCost measure_ring(const Ring& ring);

}  // namespace sluice
