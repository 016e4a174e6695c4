#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "data/dataset.h"
#include "session/log.h"
#include "session/specs.h"

namespace sluice {

// The most floats that a sample may have, or all synthetic samples by default: 512 MiB.
inline constexpr std::int64_t kMaxSampleFloats = std::int64_t{1} << 27U;

struct TaskData {
  std::shared_ptr<const Samples> train;
  std::shared_ptr<const Samples> test;
};

// Reads or makes up the data of a task, in the form that its model takes. The form of a built-in
// model comes from LibTorch.
Result<TaskData> read_task_data(const TaskSpec& spec, const Log& log);

}  // namespace sluice
