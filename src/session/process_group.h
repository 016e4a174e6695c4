#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice {

// The processes of a run: this one alone, or all that a launcher such as mpirun started. Rank 0 is
// the leader, which reads, writes and prints for all.
class ProcessGroup {
 public:
  // Joins the others, if there are any. `warn` hears of what takes suspiciously long.
  static Result<ProcessGroup> join(Warn warn);

  bool is_launched() const { return world_ != nullptr; }
  std::size_t rank() const { return world_ ? world_->rank() : 0; }
  bool is_leader() const { return rank() == 0; }
  MpiWorld& world() const { return *world_; }

  // As many workers as processes, or times those of a process, if a launcher started them.
  Result<void> dictate_workers(cli::Settings& settings) const;
  // All are ready and of the same version and settings, or a reason that names the rank; the same
  // answer for every process. It is the number of processes on each machine, if all have as many
  // and ranks go machine by machine, else 1.
  Result<std::size_t> check_in(const cli::Settings& settings, const Result<void>& ready) const;
  // What the first process says; and what all say, by rank, for the first one only.
  std::string from_first(const std::string& text, const std::string& what) const;
  std::vector<std::string> to_first(const std::string& text, const std::string& what) const;

  const Warn& warn() const { return warn_; }

 private:
  Warn warn_;
  std::unique_ptr<MpiWorld> world_;  // null: alone
};

}  // namespace sluice
