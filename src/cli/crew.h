#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice::cli {

// The processes that carry out a command together: this one alone, or all that a launcher such as
// mpirun started. The first one speaks for all.
class Crew {
 public:
  // Joins the others, if there are any.
  static Result<Crew> muster();

  bool is_launched() const { return world_ != nullptr; }
  std::size_t rank() const { return world_ ? world_->rank() : 0; }
  bool speaks() const { return rank() == 0; }
  MpiWorld& world() const { return *world_; }

  // As many workers as processes, or times those of a process, if a launcher started them.
  Result<void> dictate_workers(Settings& settings) const;
  // All are ready and of the same version and settings, or a reason that names the rank; the same
  // answer for every process. It is the number of processes on each machine, if all have as many
  // and ranks go machine by machine, else 1.
  Result<std::size_t> check_in(const Settings& settings, const Result<void>& ready) const;
  // What the first process says; and what all say, by rank, for the first one only.
  std::string from_first(const std::string& text, const std::string& what) const;
  std::vector<std::string> to_first(const std::string& text, const std::string& what) const;

  // The exit code of the command. If this process fails, it says so and ends all others.
  int run(const std::function<int()>& command) const;

 private:
  std::unique_ptr<MpiWorld> world_;  // null: alone
};

}  // namespace sluice::cli
