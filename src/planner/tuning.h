#pragma once

#include "base/result.h"
#include "model/job.h"

namespace sluice {

// Which sizes of a strategy the user has chosen.
struct ChosenSizes {
  bool slice = false;
  bool credit = false;
  bool peer_credit = false;
  bool segment = false;
};

// Changes the other sizes to what suits the machines and the link of the job: for drivers that know
// both.
void tune_for_link(Job& job, const ChosenSizes& chosen);

// Whether the driver can make the sums that the strategy leaves to it, if it does: one after the
// other in the same order on all processes, of plain gradients, one from each process. The error
// says what stands against it and what to do.
Result<void> check_driver_sums(const Strategy& strategy, const Topology& topology);

// Has the processes of one machine sum in the memory that they share, if nothing stands against it
// and the user has not chosen another way: for a driver that can do so.
void tune_sums_for_machine(Job& job);

}  // namespace sluice
