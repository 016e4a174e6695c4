#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "drivers/processes/numbers.h"
#include "session/process_group.h"

namespace sluice {

// A collective call of a participant.
struct CollectiveCall {
  enum class Kind : std::uint8_t { kBarrier, kAllReduce, kBroadcast, kOther };

  Kind kind = Kind::kOther;
  std::string text = {};  // as in messages; the same in all processes
  NumberType type = NumberType::kFloat32;
  Reduction reduction = Reduction::kSum;
  std::size_t count = 0;  // numbers, or bytes of a broadcast
  std::size_t root = 0;   // of a broadcast
};

// Has all processes agree on the call that they are about to make. Throws Disagreement in all of
// them if they make different calls, or if some have joined (see below) and the call cannot do
// without them: it can if it is a barrier, a sum, or a broadcast from another process.
void agree(ProcessGroup& group, const CollectiveCall& call);

// Takes part in the calls of others with zeros, until all processes have joined. Their broadcasts
// and disagreements are not for this one.
void take_part_with_zeros(ProcessGroup& group);

}  // namespace sluice
