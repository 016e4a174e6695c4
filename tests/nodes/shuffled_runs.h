#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "base/id.h"

// What the tests of runs in a shuffled world have in common.
namespace sluice::testing {

inline const std::vector<std::int64_t> kLayers{5, 40, 0, 17};
inline constexpr Iteration kIterations = 6;

inline std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }

}  // namespace sluice::testing
