#pragma once

#include <cstddef>

#include "collectives/plan.h"

namespace sluice {

// 2 log2(n) rounds of all the data, up to rank 0 and down again; most ranks are idle in most
// rounds.
Plan binary_tree(std::size_t rank, std::size_t size, Range whole);

}  // namespace sluice
