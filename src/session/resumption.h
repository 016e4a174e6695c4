#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "model/job.h"
#include "nodes/assembly.h"
#include "session/donors.h"
#include "session/history.h"
#include "session/log.h"
#include "session/process_group.h"
#include "session/specs.h"
#include "state/training_state.h"

namespace sluice {

// The checkpoint that a run goes on from.
struct Resumption {
  std::filesystem::path path;
  CheckpointManifest manifest;
  // The iteration that the run begins with, and by worker, where these do not all begin with it.
  Iteration first = 0;
  std::vector<Iteration> starts = {};
  // The hosts that the run had, if they are others now: then its state is re-sharded.
  std::optional<Topology> former = {};
  // The hosts that the run went on without, each with the one whose state it begins with.
  Donors donors = {};
  // Unless it is re-sharded: the files of the hosts of this process, or of their donors.
  std::vector<std::pair<HostId, std::string>> files = {};
  // Whether the run goes on and this process joins it. Then: when it last met for an evaluation,
  // what its clock showed when it let this process in, and what has become of it.
  Iteration evaluated = 0;
  Time now{0};
  bool joins = false;
  History history = {};
  std::vector<HostId> absent = {};  // that it goes on without
};

// The hosts that this process runs.
std::vector<HostId> hosts_here(const ProcessGroup& group, const Topology& topology);

// Finds the checkpoint that the spec asks for: the last one that is sound in all processes. Says in
// the log which one it is, whether other hosts take it up, and which ones are not. None: the run
// starts from the beginning. An error if there is none and the spec does not leave that open, if it
// was made with other settings, or on other hosts where the strategy does not allow that.
// Collective, with the same result in every process.
Result<std::optional<Resumption>> find_checkpoint(ProcessGroup& group, const CheckpointSpec& spec,
                                                  const Topology& topology,
                                                  const Strategy& strategy, const Log& log);

// The bytes of a host's file, if it is sound.
Result<std::string> read_host_file(const Resumption& from, HostId host);

// Sums that a run has given up, as text.
Json json_of(const std::vector<GivenUpSum>& sums);
std::vector<GivenUpSum> given_up_from(const Json& sums);

// Of the tuned job: what the bits of a run depend on.
Json measured_of(const Job& job);
// Gives a job what it had there. Throws if something is missing.
void adopt_measured(const Json& measured, Job& job);
// The job from there on. On the hosts that the run had, with what measured_of() gave instead of
// what was measured now.
Result<void> take_up(const Resumption& from, Job& job);

// Servers tell each worker only what it lacks. So from a checkpoint on they begin to count anew.
bool servers_tell_changes(const Strategy& strategy);

// Gives the nodes of this process their state. Throws if it does not fit.
void restore(const Resumption& from, const Assembly& assembly, TrainingState& state);

}  // namespace sluice
