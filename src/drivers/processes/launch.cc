#include "drivers/processes/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "base/check.h"
#include "drivers/realtime/processor.h"
#include "model/message_size.h"

namespace sluice {
namespace {

struct Launcher {
  const char* name;
  Pmi pmi;
  const char* rank;
  const char* size;
  const char* size_here;
  const char* sign;  // set by this launcher, but not by the next ones with the same rank variable
};

// The first launcher whose rank variable and sign are set counts: one may start another, as in an
// allocation of Slurm.
constexpr std::array kLaunchers{
    Launcher{"sluice launch", Pmi::kHub, kHubRankVariable, kHubSizeVariable, "", kHubVariable},
    Launcher{"Open MPI's mpirun", Pmi::kPmix, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"},
    Launcher{"MPICH's mpiexec (Hydra)", Pmi::kPmi2, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS",
             "MPI_LOCALNRANKS"},
    Launcher{"Slurm's srun --mpi=pmi2", Pmi::kPmi2, "PMI_RANK", "PMI_SIZE", "SLURM_NTASKS_PER_NODE",
             "SLURM_STEP_ID"},
    Launcher{"a launcher with PMI", Pmi::kPmi2, "PMI_RANK", "PMI_SIZE", "", "PMI_RANK"},
    Launcher{"Slurm's srun --mpi=pmix", Pmi::kPmix, "PMIX_RANK", "SLURM_STEP_NUM_TASKS",
             "SLURM_NTASKS_PER_NODE", "SLURM_PMIX_MAPPING_SERV"},
    Launcher{"a launcher with PMIx", Pmi::kPmix, "PMIX_RANK", "", "", "PMIX_RANK"},
    Launcher{"Slurm's srun without PMI (--mpi=none)", Pmi::kNone, "SLURM_PROCID",
             "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID"},
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

// How an MPI library is started.
struct Start {
  std::optional<Pmi> pmi;  // none if it is not known
  const char* with;
};

Start start_of(const std::string& library) {
  if (library.starts_with("Open MPI")) {
    return {Pmi::kPmix, "the mpirun of the same Open MPI, or srun --mpi=pmix"};
  }
  if (library.find("MPICH") != std::string::npos || library.starts_with("Intel")) {
    return {Pmi::kPmi2, "the mpiexec of the same MPI, or srun --mpi=pmi2"};
  }
  return {std::nullopt, "the launcher of the same MPI"};
}

const char* name_of(Pmi pmi) {
  switch (pmi) {
    case Pmi::kNone:
      return "no PMI";
    case Pmi::kPmi2:
      return "PMI-2";
    case Pmi::kPmix:
      return "PMIx";
    case Pmi::kHub:
      return "a hub";
  }
  fail_check("there is no such PMI");
}

}  // namespace

std::optional<Launch> find_launch(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number(environment(launcher.rank));
    if (!rank || environment(launcher.sign) == nullptr) {
      continue;
    }
    const auto size = number(environment(launcher.size));
    // The batch script of a Slurm allocation has a rank too, but it is a single task; and a single
    // process needs no hub.
    if ((launcher.pmi == Pmi::kNone || launcher.pmi == Pmi::kHub) && size.value_or(1) == 1) {
      continue;
    }
    return Launch{.by = launcher.name,
                  .pmi = launcher.pmi,
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
  return usable_cores(processes) >= kBusy;
}

int arithmetic_threads(std::size_t processes) {
  // One core computes. Memory bandwidth leaves little for more threads than this.
  constexpr std::size_t kMax = 4;
  const std::size_t cores = usable_cores(processes);
  return static_cast<int>(std::clamp<std::size_t>(cores, 2, kMax + 1) - 1);
}

std::int64_t fragment_bytes(std::optional<double> gbps) {
  constexpr std::int64_t kMin = 64 << 10;
  constexpr std::int64_t kMax = 1 << 20;
  constexpr double kUnknownGbps = 8;
  return std::clamp(message_size(8 / gbps.value_or(kUnknownGbps), true).bytes(), kMin, kMax);
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

std::string library_name(const std::string& version) {
  std::istringstream line(version.substr(0, version.find_first_of(",\n")));
  std::string name;
  for (std::string word; line >> word;) {
    if (word != "Version:") {
      name += (name.empty() ? "" : " ") + word;
    }
  }
  return name;
}

std::optional<std::string> misfit(Pmi offered, const std::string& library) {
  const Start start = start_of(library);
  if (!start.pmi || start.pmi == offered || offered == Pmi::kHub) {
    return std::nullopt;
  }
  return fmt::format(
      "it offers {}, but {}, which sluice was built with, understands {}: the processes would not "
      "find each other; start with {}",
      name_of(offered), library, name_of(*start.pmi), start.with);
}

std::string strangers(const Launch& launch, std::size_t known, const std::string& library) {
  return fmt::format(
      "{} processes were started by {} (according to {}), but MPI knows of {}: {}, which sluice "
      "was built with, does not understand this launcher; start with {}",
      launch.size.value_or(0), launch.by, launch.size_by, known, library, start_of(library).with);
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
