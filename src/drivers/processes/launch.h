#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/topology.h"

namespace sluice {

// How a launcher tells its processes of each other. The MPI library must understand it.
enum class Pmi {
  kNone,
  kPmi2,  // PMI-1 too
  kPmix,
  kHub,  // none: they meet at the hub of sluice launch
};

// How `sluice launch` tells a process of its run, if it starts it without MPI.
inline constexpr const char* kHubVariable = "SLUICE_HUB";  // address:port
inline constexpr const char* kHubTokenVariable = "SLUICE_HUB_TOKEN";
inline constexpr const char* kHubRankVariable = "SLUICE_RANK";
inline constexpr const char* kHubSizeVariable = "SLUICE_SIZE";
// Set if it takes the place of one that was lost, in a run that goes on.
inline constexpr const char* kHubJoinVariable = "SLUICE_JOINS";

// How this process was started, according to the environment: as one of several by mpirun, srun or
// similar. Known before MPI starts, and in a build without MPI.
struct Launch {
  std::string by;  // the launcher, in words
  Pmi pmi = Pmi::kNone;
  std::size_t rank = 0;
  std::optional<std::size_t> size;       // if the launcher tells it
  std::string size_by;                   // the variable that gave the size
  std::optional<std::size_t> size_here;  // likewise, of the processes on this machine
};

// The value of an environment variable; null if it is not set.
using Environment = std::function<const char*(const char* name)>;

// None: this process was started alone.
std::optional<Launch> find_launch(const Environment& environment);
// Reads the environment of this process.
std::optional<Launch> find_launch();

// Whether this number of processes leaves cores of this machine idle. Each process uses four: one
// computes, one does arithmetic, one runs MPI, and one runs the kernel's part of the network.
bool has_idle_cores(std::size_t processes);
// How many threads of each process do arithmetic if so many processes share this machine.
int arithmetic_threads(std::size_t processes);

// The length of the fragments in which a long message goes into a socket. Other messages to the
// same process wait behind a fragment, but each fragment has a fixed cost. The rate of the link may
// be unknown.
std::int64_t fragment_bytes(std::optional<double> gbps);

// How MPI was asked to carry a long message over TCP. Only Open MPI is sure to comply.
struct LongMessages {
  std::int64_t fragment_bytes = 0;
  bool receiving_thread = false;  // beside the one that sends
};

// How long MPI runs if join_mpi() starts it: a process can start it only once. If the program has
// initialised MPI, the program finalises it.
enum class MpiLife {
  kWorld,    // as long as the world
  kProcess,  // until the process exits; it may join again. An exit with a failure does not finalise
};

// The number of processes per machine, if each machine has the same number of consecutive ranks; 1
// otherwise. `machines` has a number for each rank, the same for ranks on one machine.
std::size_t processes_per_machine(const std::vector<std::size_t>& machines);
// The same of a topology whose hosts are processes.
std::size_t processes_on_a_machine(const Topology& topology);

// The name and version in what MPI_Get_library_version returns: "Open MPI v4.1.4", "MPICH 4.0.2".
std::string library_name(const std::string& version);

// Why a launcher that offers this does not fit the MPI library that was built in, and what to start
// with instead. None if they fit, or if the library is not known.
std::optional<std::string> misfit(Pmi offered, const std::string& library);

// The error when the launcher started a different number of processes than MPI knows of: they use
// different protocols.
std::string strangers(const Launch& launch, std::size_t known, const std::string& library);

std::string host_name();
// Identifies the current boot of this machine's kernel; empty if unknown.
std::string boot_id();
// "rank 2 on HOST": the name of this process in messages.
std::string rank_on_host(std::size_t rank);

}  // namespace sluice
