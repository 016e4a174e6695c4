#pragma once

#include <optional>

#include "drivers/mpi/mpi_world.h"
#include "formats/survey.h"

namespace sluice {

// All ranks call this; rank 0 gets what all of them have measured, the others get nothing. Ends in
// bounded time whoever does not answer. If anybody did not (Survey::silent), MPI is not to be
// relied on any more: end the job with MpiWorld::abort.
std::optional<Survey> survey_links(const MpiWorld& world, const SurveySpec& spec);

}  // namespace sluice
