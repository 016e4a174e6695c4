#include "drivers/mpi/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>
#include <thread>

#include "model/message_size.h"

namespace sluice {
namespace {

struct Launcher {
  const char* rank;
  const char* size;
  const char* size_here;
};

// The first launcher whose rank variable is set counts.
constexpr std::array kLaunchers{
    // Open MPI's mpirun
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // MPICH's mpiexec; srun --mpi=pmi2
    Launcher{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    // srun --mpi=pmix; PRRTE's prun
    Launcher{"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"},
    // srun without an MPI plugin
    Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"},
};

std::optional<std::size_t> number(const char* text) {
  if (text == nullptr) {
    return std::nullopt;
  }
  const std::string_view digits(text);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Launch> find_launch(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number(environment(launcher.rank));
    if (!rank) {
      continue;
    }
    const auto size = number(environment(launcher.size));
    // The batch script of a Slurm allocation has a rank too, but it is a single task.
    if (std::string_view(launcher.rank) == "SLURM_PROCID" && size.value_or(1) == 1) {
      continue;
    }
    return Launch{.by = launcher.rank,
                  .rank = *rank,
                  .size = size,
                  .size_by = launcher.size,
                  .size_here = number(environment(launcher.size_here))};
  }
  return std::nullopt;
}

std::optional<Launch> find_launch() {
  return find_launch([](const char* name) { return std::getenv(name); });
}

bool has_idle_cores(std::size_t processes) {
  constexpr std::size_t kBusy = 4;
  return std::thread::hardware_concurrency() >= kBusy * processes;
}

int arithmetic_threads(std::size_t processes) {
  // The other half computes and moves messages. Memory bandwidth leaves little for more threads.
  constexpr std::size_t kMax = 4;
  const std::size_t half = std::thread::hardware_concurrency() / (2 * processes);
  return static_cast<int>(std::clamp<std::size_t>(half, 1, kMax));
}

std::int64_t fragment_bytes(std::optional<double> gbps) {
  constexpr std::int64_t kMin = 64 << 10;
  constexpr std::int64_t kMax = 1 << 20;
  constexpr double kUnknownGbps = 8;
  return std::clamp(message_size(8 / gbps.value_or(kUnknownGbps)).bytes(), kMin, kMax);
}

std::size_t processes_on_a_machine(const Topology& topology) {
  return topology.workers_per_machine() / topology.workers_per_host();
}

std::size_t processes_per_machine(const std::vector<std::size_t>& machines) {
  std::size_t group = 1;
  while (group < machines.size() && machines[group] == machines[0]) {
    ++group;
  }
  std::set<std::size_t> seen;
  for (std::size_t r = 0; r < machines.size(); ++r) {
    const bool leads = r % group == 0;
    if (leads ? !seen.insert(machines[r]).second : machines[r] != machines[r - 1]) {
      return 1;
    }
  }
  return machines.size() % group == 0 ? group : 1;
}

std::string strangers(const Launch& launch, std::size_t known, const std::string& library) {
  // Slurm's plugin must match the library.
  std::string advice = "the launcher of the same MPI";
  if (library.starts_with("Open MPI")) {
    advice = "the mpirun of the same Open MPI, or srun --mpi=pmix";
  } else if (library.find("MPICH") != std::string::npos || library.find("Intel") == 0) {
    advice = "the mpiexec of the same MPI, or srun --mpi=pmi2";
  }
  return fmt::format(
      "{} processes were started (according to {}), but MPI knows of {}: the launcher is not one "
      "for "
      "{}, "
      "which sluice was built with; start with {}",
      launch.size.value_or(0), launch.size_by, known, library, advice);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string rank_on_host(std::size_t rank) {
  return fmt::format("rank {} on {}", rank, host_name());
}

}  // namespace sluice
