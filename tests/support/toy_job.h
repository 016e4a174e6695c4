#pragma once

#include <cstdint>
#include <vector>

#include "server/update_rule.h"

namespace sluice::testing {

// One job that two drivers run, to be held against each other. Layers go inline, as frames with a
// payload behind them, whole and in slices.
inline const std::vector<std::int64_t> kToyLayers{1000, 0, 30'000, 500, 70'001, 10};
inline constexpr std::int64_t kToySlice = 20'000;
inline const UpdateRule kToyRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-4F};

}  // namespace sluice::testing
