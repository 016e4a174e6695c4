#pragma once

#include "base/result.h"
#include "model/strategy.h"

namespace sluice {

// Whether new nodes can go on with the numbers and weights of a run, because all else that its
// nodes know at the end of a phase follows from the iterations that its workers have reached. The
// error says what does not.
Result<void> check_resumable(const Strategy& strategy);

// Whether another number of workers, servers or hosts can go on with the numbers of such a run. The
// error says which of them belong to the workers that it had.
Result<void> check_reshardable(const Strategy& strategy);

}  // namespace sluice
