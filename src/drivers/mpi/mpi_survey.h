#pragma once

#include <optional>

#include "drivers/mpi/mpi_world.h"
#include "formats/survey.h"

namespace sluice {

// All ranks call this. Rank 0 gets the measurements of all ranks, the others get nothing. Ends in
// bounded time even if some ranks do not answer. If any did not (Survey::silent), MPI is no longer
// reliable: end the job with ProcessWorld::abort.
std::optional<Survey> survey_links(const ProcessWorld& world, const SurveySpec& spec);

}  // namespace sluice
