#pragma once

#include <optional>

#include "drivers/processes/process_world.h"
#include "formats/survey.h"

namespace sluice {

// Measures the links between all processes, over connections made for it. Collective; returns the
// result to rank 0 only. The processes hear each other through the hub, so a pair is silent if the
// two cannot connect, or one does not answer.
std::optional<Survey> survey_over_tcp(ProcessWorld& world, const SurveySpec& spec);

}  // namespace sluice
