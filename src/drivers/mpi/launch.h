#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// What the environment says about how this process was started: as one of several by mpirun, srun
// or their likes. Known before MPI is, and in a build without it.
struct Launch {
  std::string by;  // the variable that told
  std::size_t rank = 0;
  std::optional<std::size_t> size;       // where the launcher says so
  std::string size_by;                   // the variable that told the size
  std::optional<std::size_t> size_here;  // likewise, of those on this machine
};

// The value of an environment variable; null if there is none.
using Environment = std::function<const char*(const char* name)>;

// None: this process was started alone.
std::optional<Launch> find_launch(const Environment& environment);
// As the process's own environment has it.
std::optional<Launch> find_launch();

// Whether so many processes leave cores of this machine idle. Each has one that computes, one for
// arithmetic, one for MPI, and one for the kernel's part of the network.
bool has_idle_cores(std::size_t processes);

// How long the pieces are in which a long message goes into a socket: what else is to go there
// waits behind a piece, but each has a price. The rate of the link may not be known.
std::int64_t fragment_bytes(std::optional<double> gbps);

// How MPI was asked to carry a long message over TCP; one that is not Open MPI may do otherwise.
struct LongMessages {
  std::int64_t fragment_bytes = 0;
  bool receiving_thread = false;  // beside the one that sends
};

// How long MPI runs if join_mpi() starts it; nobody can start it a second time in a process. An MPI
// that the program has initialised is the program's to finalise.
enum class MpiLife {
  kWorld,    // as long as the world
  kProcess,  // until the process exits; it may join again. Not finalised by an exit with a failure
};

// So many processes at a time share a machine, in the order of their ranks; 1 if they are not
// spread like that. `machines` has a number for each rank, the same for those of one machine.
std::size_t processes_per_machine(const std::vector<std::size_t>& machines);

// What to say when the launcher started other processes than MPI knows of: the two do not speak the
// same language. `library` is the MPI that was built in.
std::string strangers(const Launch& launch, std::size_t known, const std::string& library);

std::string host_name();
// Of this start of this machine's kernel; empty where there is none.
std::string boot_id();
// "rank 2 on HOST": how this process calls itself.
std::string rank_on_host(std::size_t rank);

}  // namespace sluice
