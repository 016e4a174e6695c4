#pragma once

#include <cstddef>
#include <string>

#include "drivers/processes/numbers.h"

namespace sluice {

std::size_t bytes_of(const Numbers& numbers);

// numbers <- numbers combined with as many others of the same type, which these bytes are. Throws
// std::runtime_error if the bytes are others.
void reduce_into(const Numbers& numbers, const std::string& others, Reduction reduction);

}  // namespace sluice
