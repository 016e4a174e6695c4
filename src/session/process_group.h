#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/mpi/launch.h"
#include "drivers/realtime/phase.h"
#include "drivers/realtime/warn.h"
#include "formats/survey.h"
#include "nodes/assembly.h"
#include "planner/tuning.h"

namespace sluice {

// What a group knows of the network between its hosts.
struct NetworkFacts {
  std::optional<LinkCost> link;  // measured, where hosts are on several machines
  std::optional<LongMessages> long_messages;
};

// The processes of a run: this one alone, or all that a launcher such as mpirun started. Rank 0 is
// the leader, which reads, writes and prints for all. All calls come from the thread that joined,
// and those that wait for others are made by all of them.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  bool is_leader() const { return rank() == 0; }
  // The host that this process is; none: it stands for all hosts of a run, on threads.
  virtual std::optional<HostId> own_host() const = 0;

  // What the leader says; and what all say, by rank, for the leader only. `what` says what the text
  // is for.
  virtual std::string from_leader(const std::string& text, const std::string& what) = 0;
  virtual std::vector<std::string> to_leader(const std::string& text, const std::string& what) = 0;
  // Returns when every process has heard of every other.
  virtual void meet() = 0;

  // By rank: the first rank on the same machine. Only after meet().
  virtual std::vector<std::size_t> machines() = 0;

  // Measures the links between the hosts, if there are any, and has the job suit them. Only after
  // meet().
  virtual NetworkFacts tune(Job& job, const ChosenSizes& chosen) = 0;
  // For the leader only. If anybody is silent, all that is left is abort().
  virtual std::optional<Survey> survey(const SurveySpec& spec) = 0;

  // Through a phase of training; the state is that of state_of(). Returns the signal that stopped
  // it before the end, if one did. What it throws ends the run: say why, and abort().
  virtual std::optional<int> train(const Phase& phase) = 0;

  // Ends all processes of the group, if there are others. Say why before.
  virtual void abort(int code) = 0;
};

// Joins the others, if there are any. `warn` hears of what takes suspiciously long; `life` says how
// long MPI runs, if it does and is not the program's own.
Result<std::unique_ptr<ProcessGroup>> join_processes(Warn warn, MpiLife life = MpiLife::kWorld);

// The numbers of this process's workers and of the servers beside them.
TrainingState state_of(const ProcessGroup& group, const Assembly& assembly,
                       std::span<const std::unique_ptr<Learner>> learners, const UpdateRule& rule);

// The workers of the topology that this process has, by rank.
std::vector<std::size_t> workers_here(const ProcessGroup& group, const Topology& topology);

// Who is in a group.
struct Roster {
  std::vector<std::string> hosts;  // names, by rank
  // Processes on each machine, if all have as many and ranks go machine by machine, else 1.
  std::size_t per_machine = 1;
};

// "4 processes on h0, h1".
std::string text_of(const Roster& roster);

// What all processes of a group must have alike: names and values.
using Agreement = std::map<std::string, std::string>;

// All are ready, of the same version and in agreement, and have met; or a reason that names the
// rank. The same answer for every process.
Result<Roster> check_in(ProcessGroup& group, const Agreement& own, const Result<void>& ready);

}  // namespace sluice
