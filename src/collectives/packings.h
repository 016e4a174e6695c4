#pragma once

#include <cstddef>

#include "model/strategy.h"

namespace sluice {

// How many times a dense codec packs a value, at most, on its way from a gradient to the sum that
// all ranks hold: each of them may lose something. A driver's own sum packs nothing.
int packings_of(Collective collective, std::size_t ranks);

}  // namespace sluice
