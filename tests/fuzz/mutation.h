#pragma once

#include <span>
#include <string>

#include "base/random.h"

namespace sluice::fuzz {

// One of the seeds after a few changes: bits and bytes, numbers at their limits, blocks removed,
// repeated or taken from another seed, digits in texts.
std::string mutated(std::span<const std::string> seeds, Random& random);

}  // namespace sluice::fuzz
