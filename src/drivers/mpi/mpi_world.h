#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/mpi/launch.h"
#include "drivers/realtime/warn.h"
#include "model/job.h"

namespace sluice {

// The processes of this job, as MPI knows them. All calls come from the thread that joined. A call
// that waits for others says so every ten seconds, with their ranks, through `warn`.
class MpiWorld {
 public:
  // Leaves the job, and waits for the others to leave too, if MPI was started for this world alone.
  virtual ~MpiWorld() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  // Rank 0 gets the text of every rank, by rank; the others get nothing. `what` says what the
  // text is for.
  virtual std::vector<std::string> gather(const std::string& text, const std::string& what) = 0;
  // All get the text of rank 0.
  virtual std::string broadcast(const std::string& text, const std::string& what) = 0;

  // Returns when this process and every other one have heard of each other. What MPI does among all
  // of them waits in silence where two do not reach each other; after this it need not.
  virtual void meet() = 0;

  // What a message costs between neighbours in rank while all send and receive at a time, the
  // slowest of them; the same for all. Adding is not measured. Only after meet().
  virtual LinkCost measure_link() = 0;

  // By rank: the first rank on the same machine, which is one where processes can share memory. The
  // same for all. Only after meet().
  virtual std::vector<std::size_t> machines() = 0;

  virtual LongMessages long_messages() const = 0;

  // Ends all processes of the job, this one too. Say why before.
  virtual void abort(int code) = 0;
};

// What MPI moves at once.
inline constexpr std::size_t kTextBlockBytes = std::size_t{1} << 30U;

// Only if find_launch() or program_runs_mpi() says that there is a job to join; one world at a
// time. Fails in a build without MPI, if MPI sees other processes than the launcher started, and if
// the program's own use of MPI stands in the way. Texts travel in blocks of so many bytes, as many
// for all processes.
Result<std::unique_ptr<MpiWorld>> join_mpi(Warn warn, MpiLife life = MpiLife::kWorld,
                                           std::size_t block_bytes = kTextBlockBytes);

// Whether MPI has been initialised in this process already, for several processes.
bool program_runs_mpi();

// What `sluice doctor` reports.
struct MpiInfo {
  std::string library;  // empty: none was built in
  std::string advice;   // how to get what is missing; empty if nothing is
};
MpiInfo mpi_info();

}  // namespace sluice
