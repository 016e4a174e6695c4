#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "session/log.h"
#include "session/specs.h"
#include "session/task_data.h"

namespace sluice {

// The data sets of several runs of this process: those with the same data share it. From any
// thread.
class DataStore {
 public:
  // As read_task_data(), which it calls if it has not read this data before.
  Result<TaskData> read(const TaskSpec& spec, const Log& log);

 private:
  std::mutex mutex_;
  std::vector<std::pair<TaskSpec, TaskData>> read_;
};

}  // namespace sluice
