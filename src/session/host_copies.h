#pragma once

#include <vector>

#include "nodes/assembly.h"
#include "state/saved_state.h"

namespace sluice {

// The nodes of a host of the assembly.
HostState host_state(const Assembly& assembly, TrainingState& state, HostId host);

// A copy of all that a host needs to go on elsewhere, or later: see also take_knowledge(). An
// earlier one may lend its memory.
std::vector<TensorCopy> copies_of(const Assembly& assembly, TrainingState& state, HostId host,
                                  std::vector<TensorCopy> earlier = {});

}  // namespace sluice
