#pragma once

#include <string>

#include "base/result.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/specs.h"

namespace sluice {

// Opens the record of a training, and creates the other folders that it writes to. Other processes
// than the leader have no folder.
Result<Record> open_record(const TrainSpec& spec, const std::string& workload,
                           const ProcessGroup& group);

// In a process that leads from now on: see Record::take_over().
Result<void> take_over_record(Record& record, const std::string& outline, const TrainSpec& spec,
                              const std::string& workload);

}  // namespace sluice
