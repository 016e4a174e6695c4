#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "drivers/processes/carrier.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/numbers.h"
#include "drivers/processes/peer_loss.h"
#include "drivers/processes/process_world.h"
#include "drivers/realtime/phase.h"
#include "drivers/realtime/warn.h"
#include "formats/survey.h"
#include "nodes/assembly.h"
#include "planner/tuning.h"
#include "session/merging.h"

namespace sluice {

// What a group knows of the network between its hosts.
struct NetworkFacts {
  std::optional<LinkCost> link;  // measured, where hosts are on several machines
  std::optional<LongMessages> long_messages;
  std::optional<Carrier> carrier = {};
  std::optional<Merging> merging = {};  // planned before the first iteration, not from measurements
};

// What the hosts of a simulated group have exchanged so far.
struct NetworkUse {
  Bytes bytes = 0;          // on the wire, headers included
  Duration egress_busy{0};  // mean over the hosts; with an [allreduce] table both are its channel's
  Duration ingress_busy{0};
};

// The processes of a run: this one alone, or all that a launcher such as mpirun started. One is the
// leader, which reads, writes and prints for all: see ProcessWorld. All calls come from the thread
// that joined. Calls that wait for others are collective: all processes make them.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t leader() const { return 0; }
  bool is_leader() const { return leader() == rank(); }
  // The host that this process is; none: its threads are all hosts of the run.
  virtual std::optional<HostId> own_host() const = 0;

  // Of a simulated group, whose hosts and clock are not those of its processes: the hosts, the
  // time, the use of the network, and whether it can train a model with these layers.
  virtual std::optional<Topology> topology() const { return std::nullopt; }
  virtual std::optional<Time> virtual_now() const { return std::nullopt; }
  virtual std::optional<NetworkUse> network_use() const { return std::nullopt; }
  virtual Result<void> fits(const std::function<std::vector<Layer>()>& /*layers*/) const {
    return {};
  }

  // from_leader() gives every process the leader's text; to_leader() gives the leader the texts of
  // all, by rank; that of a process that the run goes on without is empty. `what` names the text in
  // warnings.
  virtual std::string from_leader(const std::string& text, const std::string& what) = 0;
  virtual std::vector<std::string> to_leader(const std::string& text, const std::string& what) = 0;
  // Both at once, and the leader may be lost meanwhile: see ProcessWorld.
  virtual std::string agree(const std::string& own, const Decide& decide, const std::string& what) {
    const std::vector<std::string> texts = to_leader(own, what);
    return from_leader(is_leader() ? decide(texts) : "", what);
  }
  // Gives every process its own of the leader's texts, which are by rank.
  virtual std::string scatter(const std::vector<std::string>& texts, const std::string& what) = 0;
  // See ProcessWorld. In a group of one nothing changes.
  virtual void all_reduce(const Numbers& numbers, Reduction reduction) = 0;
  virtual void broadcast_from(std::size_t root, std::span<std::byte> bytes) = 0;
  virtual std::vector<std::string> all_gather(const std::string& own) = 0;
  // Returns when every process has heard of every other.
  virtual void meet() = 0;

  // By rank: the first rank on the same machine. Only after meet().
  virtual std::vector<std::size_t> machines() = 0;

  // What should carry messages between processes, from the next tune() on.
  virtual void carry_by(const TransportChoice& /*choice*/) {}
  // Measures the links between the hosts, if there are any, and tunes the job to them. Only after
  // meet().
  virtual NetworkFacts tune(Job& job, const ChosenSizes& chosen) = 0;
  // Returns the result to the leader only. If any rank was silent, the only valid call is abort().
  virtual std::optional<Survey> survey(const SurveySpec& spec) = 0;

  // Runs a phase of training; the state is that of state_of(). Returns the signal that stopped it
  // early, if one did. An exception ends the run: print the reason, then call abort(). With several
  // processes a failure does not throw: it is reported, and ends all of them.
  virtual std::optional<int> train(const Phase& phase) = 0;

  // The same, but it has only begun when this returns: see RunningPhase. Several may run at a time.
  // Not in virtual time.
  virtual std::unique_ptr<RunningPhase> begin(const Phase& /*phase*/) {
    fail_check("this group has no phase of this kind");
  }
  // For a thread that carries out running phases. The work is called again and again, without a
  // pause, in a call that waits for others; beat() is to be called now and then between calls.
  virtual void while_waiting(std::function<void()> /*work*/) {}
  virtual void beat() {}

  // After training, others take a process that they wait for, and that is silent for some seconds,
  // for lost. So let this run what takes long, such as writing files: on another thread, while this
  // one sends heartbeats. Throws what the work throws.
  virtual void attend(const std::function<void()>& work) = 0;

  // The ranks that the run goes on without.
  virtual std::vector<std::size_t> lost() const { return {}; }
  // All that were lost since the run began here, in order, also those that have come back.
  virtual std::vector<PeerLoss> losses() const { return {}; }

  // How a process joins a run that goes on: see ProcessWorld.
  virtual bool joins() const { return false; }
  virtual void await_admission() {}
  virtual void note_beginning() {}
  virtual void end_beginning(bool /*takes_joiners*/) {}
  virtual bool has_joiners() const { return false; }
  virtual std::vector<std::size_t> let_in() { return {}; }
  virtual void send_text(std::size_t /*to*/, const std::string& /*text*/) {}
  virtual std::string receive_text(std::size_t /*from*/, const std::string& /*what*/) { return {}; }

  // Ends all processes of the group, if there are others. Print the reason first.
  virtual void abort(int code) = 0;
};

// Joins the other processes, if there are any. `warn` gets warnings of what takes suspiciously
// long, `fail` gets failures that end all processes at once; `life` sets how long MPI runs, if
// Sluice starts it.
Result<std::unique_ptr<ProcessGroup>> join_processes(Warn warn, Fail fail,
                                                     MpiLife life = MpiLife::kWorld);

// The state of this process's workers and servers. Collective: a process with servers only gets the
// first parameters of their shards from the leader.
TrainingState state_of(ProcessGroup& group, const Assembly& assembly,
                       std::span<const std::unique_ptr<Learner>> learners, const UpdateRule& rule);

// Whether some processes have servers only: see dedicated_servers.h.
bool has_dedicated_servers(const ProcessGroup& group, const Topology& topology);

// The workers of the topology that this process runs, by rank; with servers only there are none.
std::vector<std::size_t> workers_here(const ProcessGroup& group, const Topology& topology);

// The processes of a group.
struct Roster {
  std::vector<std::string> hosts;     // names, by rank
  std::vector<std::size_t> machines;  // as ProcessGroup::machines()
  // Processes per machine, if each machine has the same number of consecutive ranks; else 1.
  std::size_t per_machine = 1;
};

// Processes per machine of a run in which only the first ones have workers: all of them, if they
// are on one machine; else like Roster::per_machine, but of the processes with workers.
std::size_t per_machine(const Roster& roster, std::size_t with_workers);

// "4 processes on h0, h1".
std::string text_of(const Roster& roster);

// Names and values that must be the same in all processes of a group.
using Agreement = std::map<std::string, std::string>;

// Checks that all processes are ready, have the same version and agree, and that they have met; the
// error names the rank. The result is the same in every process.
Result<Roster> check_in(ProcessGroup& group, const Agreement& own, const Result<void>& ready);

}  // namespace sluice
