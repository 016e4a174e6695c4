#include "drivers/processes/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/host_list.h"
#include "cli/hub_job.h"
#include "cli/mpirun_job.h"
#include "cli/placement.h"
#include "cli/restart_count.h"
#include "cli/restarts.h"
#include "cli/slurm_allocation.h"
#include "drivers/mpi/mpi_world.h"
#include "lab/process.h"

namespace sluice::cli {
namespace {

// Sluice has more threads than one per process, so processes are not bound to cores. Without a file
// of hosts all run here, also where there are fewer cores.
Words open_mpi_words(const std::string& processes, const std::string& hostfile) {
  Words words{"mpirun", "-np", processes, "--bind-to", "none", "-x", kRestartVariable};
  if (std::getenv(kEarlierStartsVariable) != nullptr) {
    words.insert(words.end(), {"-x", kEarlierStartsVariable});
  }
  if (hostfile.empty()) {
    words.emplace_back("--oversubscribe");
  } else {
    words.insert(words.end(), {"--hostfile", hostfile});
  }
  if (geteuid() == 0) {
    words.emplace_back("--allow-run-as-root");
  }
  return words;
}

Words mpich_words(const std::string& processes, const std::string& hostfile) {
  Words words{"mpiexec.hydra", "-n", processes};
  if (!hostfile.empty()) {
    words.insert(words.end(), {"-f", hostfile});
  }
  return words;
}

int run_instead(const Words& words) {
  setenv(kRestartVariable, "0", 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const bool missing = errno == ENOENT;
  return failed(Error(fmt::format("launch: {}: {}{}", words.front(), std::strerror(errno),
                                  missing ? "; install it (apt-get install openmpi-bin, or hydra "
                                            "for MPICH), or put it on the PATH"
                                          : "")));
}

// What Open MPI was told, by its version 4 or 5.
std::string told(const char* orte, const char* prrte) {
  const char* const first = std::getenv(orte);
  const char* const other = first != nullptr ? first : std::getenv(prrte);
  return other != nullptr ? other : "";
}

// A machine of these names is this one.
bool is_here(const std::string& host) { return host == "localhost" || host == host_name(); }

// By the named hostfile, or that which Open MPI was told.
Result<Placement> placement_of(std::size_t processes, const std::string& named) {
  Placement place{.hosts = std::vector<std::string>(processes)};
  const std::string hostfile =
      named.empty() ? told("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile")
                    : named;
  if (!hostfile.empty()) {
    const auto text = read_file(hostfile);
    if (!text) {
      return text.error().within("--hostfile");
    }
    auto hosts = hosts_in(*text, processes);
    if (!hosts) {
      return hosts.error().within("--hostfile: " + hostfile);
    }
    place.hosts = *std::move(hosts);
    std::ranges::replace_if(place.hosts, is_here, "");
  }
  if (const std::string agent = told("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent");
      !agent.empty()) {
    std::istringstream words(agent);
    place.agent.assign(std::istream_iterator<std::string>(words), {});
  }
  return place;
}

struct MpiJob {
  Words command;
  std::size_t processes = 1;
  std::string hostfile;
  bool mpich = mpi_info().library.starts_with("MPICH");

  // With this hostfile.
  Words words(const std::string& hosts) const {
    const std::string number = fmt::format("{}", processes);
    Words all = mpich ? mpich_words(number, hosts) : open_mpi_words(number, hosts);
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
};

Ending run_mpi_job(const MpiJob& job, std::int64_t restart) {
  const auto place = placement_of(job.processes, job.hostfile);
  const auto others =
      restart > 0 && place ? without_unreachable(*place, warn) : std::optional<Placement>();
  if (!others) {
    return run_mpirun(job.words(job.hostfile), restart);
  }
  const TemporaryFile file(hostfile_of(others->hosts, job.mpich));
  return run_mpirun(job.words(file.path()), restart);
}

// Without a file of hosts: in the allocation of Slurm, if there is one, else on this machine.
Result<Placement> placement_at_hub(std::size_t processes, const std::string& hostfile) {
  auto place = placement_of(processes, hostfile);
  const bool named = place && std::ranges::any_of(place->hosts, [](const std::string& host) {
                       return !host.empty();
                     });
  if (!place || named || !hostfile.empty()) {
    return place;
  }
  auto in_slurm = placement_in_slurm(
      processes, [](const char* name) { return std::getenv(name); },
      [](const std::string& nodes) {
        return lab::output_of({"scontrol", "show", "hostnames", nodes});
      });
  if (!in_slurm) {
    return in_slurm.error().within("launch");
  }
  std::optional<Placement> nodes = *std::move(in_slurm);
  if (!nodes) {
    return place;
  }
  std::ranges::replace_if(nodes->hosts, is_here, "");
  return *std::move(nodes);
}

int launch_at_hub(const Settings& settings, const Words& command, std::int64_t restarts,
                  const std::string& checkpoints) {
  const auto place =
      placement_at_hub(static_cast<std::size_t>(settings.integer("np")), settings.text("hostfile"));
  if (!place) {
    return bad_input(place.error());
  }
  const auto run = [&](std::int64_t restart) {
    HubPlan plan{
        .command = command, .place = *place, .rejoins = restarts, .checkpoints = checkpoints};
    if (restart > 0) {
      plan.place = without_unreachable(*place, warn).value_or(*place);
    }
    return run_at_hub(plan, restart);
  };
  return restarts == 0 ? run(0).code : run_with_restarts(run, restarts, checkpoints);
}

}  // namespace

int launch(const Settings& settings, const Words& command) {
  if (command.empty()) {
    return bad_input(
        Error("launch: expected a command after --, such as: sluice launch --np 4 -- python3 "
              "train.py"));
  }
  if (const auto outer = find_launch()) {
    return bad_input(Error(fmt::format(
        "launch: {} has started this process already; give it the command itself", outer->by)));
  }
  const std::string hostfile = settings.text("hostfile");
  if (!hostfile.empty() && access(hostfile.c_str(), R_OK) != 0) {
    return bad_input(Error(fmt::format("--hostfile: {}: {}", hostfile, std::strerror(errno))));
  }
  const std::int64_t restarts = settings.integer("max-restarts");
  const std::string named = settings.text("checkpoint");
  const std::string checkpoints = named.empty() ? checkpoints_of(command) : named;
  if (settings.text("transport") == "tcp") {
    return launch_at_hub(settings, command, restarts, checkpoints);
  }
  const MpiJob job{.command = command,
                   .processes = static_cast<std::size_t>(settings.integer("np")),
                   .hostfile = hostfile};
  return restarts == 0
             ? run_instead(job.words(hostfile))
             : run_with_restarts([&](std::int64_t restart) { return run_mpi_job(job, restart); },
                                 restarts, checkpoints);
}

}  // namespace sluice::cli
