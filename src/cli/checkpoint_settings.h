#pragma once

#include "base/result.h"
#include "cli/settings.h"
#include "session/specs.h"

namespace sluice::cli {

// What --checkpoint, --resume and their like say.
Result<CheckpointSpec> checkpoint_spec(const Settings& settings);

}  // namespace sluice::cli
