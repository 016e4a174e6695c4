#pragma once

#include "base/result.h"
#include "session/log.h"
#include "session/specs.h"
#include "torch/torch_learner.h"

namespace sluice {

// What this number of workers computes with: the model, its device, its data. It has no loader yet.
Result<TorchTask> make_task(const TaskSpec& spec, std::size_t workers, const Log& log);

}  // namespace sluice
