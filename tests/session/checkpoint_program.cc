// Trains toy learners as one process of an MPI job, for checkpoints_mpi_test.cc:
//
//   checkpoint_program FOLDER SERVERS PRESET...
//
// Each preset is trained at once, and once more in three runs that go on from checkpoints. The last
// processes have the servers. Rank 0 prints for each preset whether all workers ended alike.

#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <string>

#include "session/process_group.h"
#include "support/resumed_runs.h"

namespace sluice::testing {
namespace {

void say(const std::string& text) { std::cerr << text + "\n" << std::flush; }

bool resumes(ProcessGroup& group, const Preset& preset, std::size_t servers,
             const std::string& folder) {
  const bool apart = preset.strategy.uses_servers() && servers > 0;
  Job job;
  job.topology = apart ? Topology(group.size() - servers, 1, servers)
                       : Topology(group.size(), 1, 0, group.size());
  job.strategy = resumed_strategy(preset);
  if (preset.strategy.partition == Partition::kMerged) {
    job.groups = {{3, 6}, {0, 3}};
  }
  tune_sums_for_machine(job);
  const bool alike =
      resumes_alike(group, {.job = job, .rule = resumed_rule(preset), .until = 14}, {5, 9}, folder);
  for (const std::string& other : group.all_gather(alike ? "yes" : "no")) {
    if (other != "yes") {
      return false;
    }
  }
  return true;
}

int run(const std::string& folder, std::size_t servers, const std::vector<std::string>& names) {
  auto joined = join_processes(say, [](std::size_t rank, const std::exception& why) {
    say(fmt::format("rank {}: {}", rank, why.what()));
    return 1;
  });
  if (!joined) {
    say(joined.error().message());
    return 1;
  }
  ProcessGroup& group = **joined;
  if (!check_in(group, {}, {})) {
    return 1;
  }
  for (const std::string& name : names) {
    const bool alike = resumes(group, *find_preset(name), servers, folder + "/" + name);
    if (group.is_leader()) {
      std::cout << name << (alike ? " goes on\n" : " DIFFERS\n") << std::flush;
    }
  }
  return 0;
}

}  // namespace
}  // namespace sluice::testing

int main(int argc, char** argv) {
  try {
    return sluice::testing::run(argv[1], std::stoul(argv[2]), {argv + 3, argv + argc});
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 1;
  }
}
