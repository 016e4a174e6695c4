#include "base/check.h"
#include "drivers/mpi/mpi_survey.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice {
namespace {

constexpr const char* kHowToGet =
    "this build has no MPI: install one (Debian: apt-get install libopenmpi-dev openmpi-bin), then "
    "build with -DSLUICE_MPI=ON";

}  // namespace

Result<std::unique_ptr<ProcessWorld>> join_mpi(Warn /*warn*/, Fail /*fail*/, MpiLife /*life*/,
                                               std::size_t /*block_bytes*/) {
  return Error(kHowToGet);
}

bool program_runs_mpi() { return false; }

MpiInfo mpi_info() { return {.library = "", .advice = kHowToGet}; }

std::optional<Survey> survey_links(const ProcessWorld& /*world*/, const SurveySpec& /*spec*/) {
  fail_check("there is no MPI to join");
}

}  // namespace sluice
