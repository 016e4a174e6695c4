#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/bits.h"
#include "protocol/payload.h"
#include "protocol/work.h"

namespace sluice {

// A work while Workspace carries it out: in one part, or in several that different threads may do
// at a time, with the same bits. Packing by a codec with a range takes two passes over all parts.
// The work outlives it.
struct WorkInParts {
  const Work& work;
  std::vector<Range> parts;             // of the work's range; of a factor's work, rows or columns
  int pass = 0;                         // over all parts
  std::vector<Magnitude> largest = {};  // by part, of what is packed
  std::vector<float> clips = {};        // DGC: by layer that the range touches
  // What is packed by a dense codec. Nobody clears it beforehand: for a long vector that would take
  // the thread that begins the work as long as a part of it.
  std::span<std::byte> packed = {};
  Payload output = {};  // there from the beginning, if it is packed by a dense codec

  // Of a part, in the range of the work.
  std::size_t offset(std::size_t part) const {
    return static_cast<std::size_t>(parts[part].begin - work.range.begin);
  }
};

}  // namespace sluice
