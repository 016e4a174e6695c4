#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// The positions of the `k` largest magnitudes, ascending; all of them if there are no more than
// `k`. Of equal magnitudes the first win. Infinity is larger than any number, NaN larger still.
std::vector<std::uint32_t> top_k(std::span<const float> values, std::size_t k);

}  // namespace sluice
