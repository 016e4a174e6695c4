#pragma once

#include <optional>

#include "base/result.h"
#include "cli/settings.h"
#include "session/codec_choice.h"
#include "session/specs.h"

namespace sluice::cli {

// The strategy of a run; with codec auto, also the codecs to choose from. Errors name the flag.
Result<StrategySpec> strategy_spec(const Settings& settings);

// The spec without a question left: with the codec that was chosen, if there was one.
StrategySpec settled(StrategySpec spec, const std::optional<CodecChoice>& choice);

}  // namespace sluice::cli
