#pragma once

#include <span>
#include <string>

#include "protocol/counters.h"
#include "session/process_group.h"
#include "session/record.h"

namespace sluice {

// What this process has counted and recorded, for the leader.
std::string seen_by(const ProcessGroup& group, const Record& record, const Counters& own);
// In the leader: sums the counters of all processes; its record adopts what the others have seen.
// The texts are by rank; that of a lost process is empty.
Counters adopt(std::span<const std::string> seen, const ProcessGroup& group, Record& record);

// Both. Collective; the result is for the leader.
Counters collect(ProcessGroup& group, Record& record, const Counters& own);

}  // namespace sluice
