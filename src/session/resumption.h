#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "model/job.h"
#include "nodes/assembly.h"
#include "session/log.h"
#include "session/process_group.h"
#include "session/specs.h"
#include "state/training_state.h"

namespace sluice {

// The checkpoint that a run goes on from, with the files of the hosts of this process.
struct Resumption {
  std::filesystem::path path;
  CheckpointManifest manifest;
  std::vector<std::pair<HostId, std::string>> files;
};

// The hosts that this process runs.
std::vector<HostId> hosts_here(const ProcessGroup& group, const Topology& topology);

// Finds the checkpoint that the spec asks for: the last one that is sound in all processes. Says in
// the log which one it is, and which ones are not. None: the run starts from the beginning. An
// error if there is none and the spec does not leave that open, or if it was made with other
// settings. Collective, with the same result in every process.
Result<std::optional<Resumption>> find_checkpoint(ProcessGroup& group, const CheckpointSpec& spec,
                                                  const Topology& topology, const Log& log);

// Of the tuned job: what the bits of a run depend on.
Json measured_of(const Job& job);
// Takes over what measured_of() gave, instead of what was measured now.
Result<void> adopt_measured(const Json& measured, Job& job);

// Gives the nodes of this process their state. Throws if it does not fit.
void restore(const Resumption& from, const Assembly& assembly, TrainingState& state);

}  // namespace sluice
