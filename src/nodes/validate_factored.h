#pragma once

#include <span>

#include "base/result.h"
#include "model/layer.h"
#include "model/strategy.h"

namespace sluice {

// Whether the strategy can have codec powersgd, if it has it, and its rank.
Result<void> validate_factored(const Strategy& strategy);
// Whether a profile with these layers says what the codec needs: an old one has no matrices.
Result<void> check_matrices(const Strategy& strategy, std::span<const Layer> layers);

}  // namespace sluice
