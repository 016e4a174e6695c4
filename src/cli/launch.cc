#include "drivers/processes/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/restart_count.h"
#include "cli/restarts.h"
#include "drivers/mpi/mpi_world.h"

namespace sluice::cli {
namespace {

// Sluice has more threads than one per process, so processes are not bound to cores. Without a file
// of hosts all run here, also where there are fewer cores.
Words open_mpi_words(const std::string& processes, const std::string& hostfile) {
  Words words{"mpirun", "-np", processes, "--bind-to", "none", "-x", kRestartVariable};
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
  const std::string processes = fmt::format("{}", settings.integer("np"));
  const bool mpich = mpi_info().library.starts_with("MPICH");
  Words words = mpich ? mpich_words(processes, hostfile) : open_mpi_words(processes, hostfile);
  words.insert(words.end(), command.begin(), command.end());
  const std::int64_t restarts = settings.integer("max-restarts");
  const std::string named = settings.text("checkpoint");
  return restarts == 0
             ? run_instead(words)
             : run_with_restarts(words, restarts, named.empty() ? checkpoints_of(command) : named);
}

}  // namespace sluice::cli
