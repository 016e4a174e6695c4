#include "drivers/mpi/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>

#include "model/job.h"

namespace sluice {
namespace {

struct Launcher {
  const char* rank;
  const char* size;
  const char* size_here;
};

// The first one that tells a rank counts.
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
    // The script of a Slurm allocation has a rank too, but no tasks beside it.
    if (std::string_view(launcher.rank) == "SLURM_PROCID" && size.value_or(1) == 1) {
      continue;
    }
    return Launch{launcher.rank, *rank, size, number(environment(launcher.size_here))};
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

std::int64_t fragment_bytes(std::optional<double> gbps) {
  if (gbps && *gbps < kSlowGbps) {
    return 64 << 10;
  }
  return gbps && *gbps > kFastGbps ? 1 << 20 : 256 << 10;
}

std::size_t processes_per_machine(const std::vector<std::string>& hosts) {
  std::size_t group = 1;
  while (group < hosts.size() && hosts[group] == hosts[0]) {
    ++group;
  }
  std::set<std::string> machines;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    const bool leads = r % group == 0;
    if (leads ? !machines.insert(hosts[r]).second : hosts[r] != hosts[r - 1]) {
      return 1;
    }
  }
  return hosts.size() % group == 0 ? group : 1;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::string rank_on_host(std::size_t rank) {
  return fmt::format("rank {} on {}", rank, host_name());
}

}  // namespace sluice
