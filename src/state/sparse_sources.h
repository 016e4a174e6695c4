#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/range.h"
#include "codecs/sparse.h"
#include "protocol/work.h"

namespace sluice {

// Checks what came over the network before anything is used as an index.
SparseView parsed(std::span<const std::byte> bytes, const Range& range);
// The sum of a work's sources, which are sparse.
std::vector<std::byte> sum_of(const Work& work);
// The sources, which are codes of a gathered codec, one after the other.
std::vector<std::byte> joined(const Work& work);
std::vector<std::uint32_t> positions_of(const SparseView& sparse);

}  // namespace sluice
