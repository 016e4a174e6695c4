#pragma once

#include "protocol/counters.h"
#include "session/process_group.h"
#include "session/record.h"

namespace sluice {

// Sums the counters of all processes; the leader's record adopts what the others have seen.
// Collective; the result is for the leader.
Counters collect(ProcessGroup& group, Record& record, const Counters& own);

}  // namespace sluice
