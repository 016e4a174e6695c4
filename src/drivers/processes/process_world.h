#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/processes/launch.h"
#include "drivers/processes/letters.h"
#include "drivers/processes/numbers.h"
#include "drivers/processes/peer_loss.h"
#include "drivers/processes/socket_alarm.h"
#include "drivers/realtime/clock.h"
#include "drivers/realtime/gate.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/peer_transport.h"
#include "model/job.h"
#include "partition/chunk_map.h"
#include "protocol/message_rules.h"

namespace sluice {

// What carries the messages of a phase, unless connections of our own do.
struct TransportSpec {
  const Topology& topology;
  const ChunkMap& chunks;
  const MessageRules& rules;
  bool sums_in_memory = false;  // rather than by MPI: all processes are on one machine
  Iteration first = 0;          // that runs
  const Clock& clock;
  std::shared_ptr<Mailbox> mailbox;  // of this host
  const Gates& gates;                // of its workers
  bool awaits_receivers = true;      // of payloads
  bool spins = false;                // while anything is in flight, since there is a core for it
  std::shared_ptr<SocketAlarm> alarm = nullptr;  // of the mailbox; null: data wakes nobody
};

// Makes the text of the leader for all from those of all, by rank.
using Decide = std::function<std::string(const std::vector<std::string>& texts)>;

// The processes of this job, as MPI or a hub knows them. All calls come from the thread that
// joined. A call that waits for other processes reports their ranks through a warning every ten
// seconds. A failure of the network ends the job.
//
// One of them leads: at first rank 0, and if the run goes on without the one that leads, the lowest
// rank that is left. One that comes back does not lead because of its rank.
class ProcessWorld {
 public:
  // Leaves the job, and waits for the others to leave too, if this world was made for it alone.
  virtual ~ProcessWorld() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  // Who leads, as far as this process knows; the same in all when agree() or broadcast() returns,
  // but for losses since. In a process that has not joined yet, nobody.
  virtual std::size_t leader() const { return 0; }
  bool leads() const { return leader() == rank(); }

  // The leader gets the text of every rank, by rank; the others get nothing. `what` names the text
  // in warnings.
  virtual std::vector<std::string> gather(const std::string& text, const std::string& what) = 0;
  // All get the text of the leader. If it is lost before, they get that of the next one.
  virtual std::string broadcast(const std::string& text, const std::string& what) = 0;
  // Every rank gets its own of the texts that the leader has, by rank.
  virtual std::string scatter(const std::vector<std::string>& texts, const std::string& what) = 0;
  // All give the leader their texts, and get what it makes of them; that of a lost process is
  // empty. If the leader is lost before all get that, the next one makes it.
  virtual std::string agree(const std::string& own, const Decide& decide, const std::string& what) {
    const std::vector<std::string> texts = gather(own, what);
    return broadcast(leads() ? decide(texts) : "", what);
  }

  // Returns when this process and every other one have heard of each other: MPI's collective
  // operations block without a message if two processes do not reach each other.
  virtual void meet() = 0;

  // The cost of a message between neighbours in rank while all send and receive at once: the
  // slowest of them, the same for all. Adding is not measured. Only after meet().
  virtual LinkCost measure_link() = 0;

  // By rank: the first rank on the same machine, that is, with which it can share memory. The same
  // for all. Only after meet().
  virtual std::vector<std::size_t> machines() = 0;

  // Where this process takes TCP connections of the others, if they are on several machines; empty:
  // nowhere.
  virtual std::string address() const = 0;
  // None: only TCP connections of our own carry messages.
  virtual std::optional<LongMessages> long_messages() const = 0;
  bool has_transport() const { return long_messages().has_value(); }
  // Carries the messages of a phase without connections of our own, if it can.
  virtual std::unique_ptr<PeerTransport> make_transport(const TransportSpec& spec) = 0;
  // For a phase that is about to begin in all processes.
  virtual std::unique_ptr<Letters> open_letters() = 0;

  // From now on the run goes on without a process for which this is true, if it is lost: then it
  // has sent empty texts. Where nobody outlives a process, such as under mpirun, nothing changes.
  virtual void outlive(std::function<bool(std::size_t rank)> /*which*/) {}
  // This process does not reach that rank any more, and has not heard that it is lost. If somebody
  // can tell who of the two is to go, one of them is lost soon, or all end.
  virtual void cut_off(std::size_t /*rank*/) {}
  // The ranks that the run goes on without.
  virtual std::vector<std::size_t> lost() const { return {}; }
  // All that were lost since this process began, in order, also those that have come back.
  virtual std::vector<PeerLoss> losses() const { return {}; }

  // A lost process may be replaced by one that joins the run. It makes the same collective calls as
  // the others did between note_beginning() and end_beginning(), and hears what these heard then,
  // without them; only one that is about this moment, such as connecting, it must leave out. Then
  // it awaits its admission and counts from there on.
  virtual bool joins() const { return false; }
  virtual void await_admission() {}
  // All others. Whether a process may join later is the same in all.
  virtual void note_beginning() {}
  virtual void end_beginning(bool /*takes_joiners*/) {}
  // From any thread: somebody waits to be let in.
  virtual bool has_joiners() const { return false; }
  // Between phases, collective: lets in who waits, and tells who that is.
  virtual std::vector<std::size_t> let_in() { return {}; }
  // From one process to another; as with the collective calls, the text of a lost one is empty.
  virtual void send_text(std::size_t /*to*/, const std::string& /*text*/) {}
  virtual std::string receive_text(std::size_t /*from*/, const std::string& /*what*/) { return {}; }

  // Collective operations on the caller's memory, of any length; only after meet(). All processes
  // pass as many numbers or bytes of the same type. all_gather() gives everybody the bytes of every
  // rank, by rank, which may differ in length.
  virtual void all_reduce(const Numbers& numbers, Reduction reduction) = 0;
  virtual void broadcast_from(std::size_t root, std::span<std::byte> bytes) = 0;
  virtual std::vector<std::string> all_gather(const std::string& own) = 0;

  // Call this after training, in all processes. From then on a process that others wait for, and
  // that is neither in a call nor at work for attend(), fails the job after a few seconds, and so
  // does one that died.
  virtual void expect_heartbeats() = 0;
  // Called again and again, without a pause, while this process waits for others in a call of the
  // world. Empty: it sleeps instead.
  virtual void while_waiting(std::function<void()> work) = 0;
  // Sends and takes heartbeats, if any are expected; for a thread that waits by itself.
  virtual void beat() = 0;
  // Runs work that takes long, such as writing files, on a thread of its own. Meanwhile this
  // process sends heartbeats. Throws what the work throws.
  virtual void attend(const std::function<void()>& work) = 0;

  // Reports the failure and ends all processes of the job, including this one. Until then the
  // others may read what this process has in flight: call this before its memory is freed.
  [[noreturn]] virtual void fail(const std::exception_ptr& why) = 0;
  // The same, after the reason has been printed.
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace sluice
