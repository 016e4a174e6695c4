#pragma once

#include "base/result.h"
#include "model/job.h"

namespace sluice {

// Which sizes of a strategy the user has set, and whether local aggregation.
struct ChosenSizes {
  bool slice = false;
  bool credit = false;
  bool peer_credit = false;
  bool segment = false;
  bool local_aggregation = false;
};

// Up to so many parameters, neighbouring layers of the job's model should travel as one chunk: a
// message of fewer would take the wire less time than its processors. 0 where they must not,
// because an update or a code depends on what is in a chunk.
std::int64_t tiny_params(const Job& job);

// Tunes the other sizes to the machines and the link of the job, for drivers that know both. Tiny
// layers are joined where the strategy cuts slices and their size is not set. Workers of a machine
// add their gradients first where that pays. `announced`: MPI carries the messages, see
// message_size().
void tune_for_link(Job& job, const ChosenSizes& chosen, bool announced = false);

// If the strategy leaves sums to the driver, checks that the driver can make them: one after
// another in the same order on all processes, of plain gradients, one from each process. The error
// says what prevents it and what to do.
Result<void> check_driver_sums(const Strategy& strategy, const Topology& topology);

// Makes the processes of one machine sum in shared memory, if nothing prevents it and the user has
// not chosen another collective. For drivers that support it.
void tune_sums_for_machine(Job& job);

}  // namespace sluice
