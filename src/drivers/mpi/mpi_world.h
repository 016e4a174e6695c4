#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/mpi/launch.h"
#include "drivers/mpi/numbers.h"
#include "drivers/realtime/warn.h"
#include "model/job.h"

namespace sluice {

// The processes of this job, as MPI knows them. All calls come from the thread that joined. A call
// that waits for other processes reports their ranks through `warn` every ten seconds. A failure of
// the network ends the job.
class MpiWorld {
 public:
  // Leaves the job, and waits for the others to leave too, if MPI was started for this world alone.
  virtual ~MpiWorld() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  // Rank 0 gets the text of every rank, by rank; the others get nothing. `what` names the text in
  // warnings.
  virtual std::vector<std::string> gather(const std::string& text, const std::string& what) = 0;
  // All get the text of rank 0.
  virtual std::string broadcast(const std::string& text, const std::string& what) = 0;
  // Every rank gets its own of the texts that rank 0 has, by rank.
  virtual std::string scatter(const std::vector<std::string>& texts, const std::string& what) = 0;

  // Returns when this process and every other one have heard of each other. MPI's collective
  // operations block without a message if two processes do not reach each other; after meet() all
  // do.
  virtual void meet() = 0;

  // The cost of a message between neighbours in rank while all send and receive at once: the
  // slowest of them, the same for all. Adding is not measured. Only after meet().
  virtual LinkCost measure_link() = 0;

  // By rank: the first rank on the same machine, that is, with which it can share memory. The same
  // for all. Only after meet().
  virtual std::vector<std::size_t> machines() = 0;

  virtual LongMessages long_messages() const = 0;

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

// The largest block of a text, since MPI counts in 32 bits.
inline constexpr std::size_t kTextBlockBytes = std::size_t{1} << 30U;

// Call this only if find_launch() or program_runs_mpi() finds a job to join, and for one world at a
// time. Fails in a build without MPI, if MPI sees other processes than the launcher started, and if
// the program's own use of MPI is incompatible. Texts are sent in blocks of `block_bytes`, the same
// for all processes.
Result<std::unique_ptr<MpiWorld>> join_mpi(Warn warn, Fail fail, MpiLife life = MpiLife::kWorld,
                                           std::size_t block_bytes = kTextBlockBytes);

// Whether MPI has already been initialised in this process, for several processes.
bool program_runs_mpi();

// What `sluice doctor` reports.
struct MpiInfo {
  std::string library;  // empty: none was built in
  std::string advice;   // how to get what is missing; empty if nothing is
};
MpiInfo mpi_info();

}  // namespace sluice
