#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "drivers/realtime/phase.h"

namespace sluice {

// Steps as text, from one process to another. A time is sent as its age, since every process has
// its own clock: `now` is that of the process that encodes or decodes.
std::string encode(const std::vector<StepReport>& steps, Time now);
// The text may be malformed, or name a worker that the run does not have.
Result<std::vector<StepReport>> decode_steps(const std::string& text, std::size_t workers,
                                             Time now);

}  // namespace sluice
