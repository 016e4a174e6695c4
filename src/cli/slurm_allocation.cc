#include "cli/slurm_allocation.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <string_view>

#include "cli/host_list.h"

namespace sluice::cli {
namespace {

// Reads a number at the beginning of the text, and removes it.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// How often "2(x3)" repeats its number: 3.
std::optional<std::size_t> take_repetition(std::string_view& text) {
  constexpr std::string_view kTimes = "(x";
  if (!text.starts_with(kTimes)) {
    return 1;
  }
  text.remove_prefix(kTimes.size());
  const auto times = take_number(text);
  if (!times || !text.starts_with(')')) {
    return std::nullopt;
  }
  text.remove_prefix(1);
  return times;
}

}  // namespace

Result<std::vector<std::size_t>> tasks_by_node(const std::string& counts) {
  // No cluster has so many nodes, and a longer list is a mistake.
  constexpr std::size_t kMostNodes = 100'000;
  std::vector<std::size_t> tasks;
  for (std::string_view left = counts; !left.empty();) {
    const auto count = take_number(left);
    const auto times = take_repetition(left);
    const bool ends = left.empty() || left.starts_with(',');
    if (!count || !times || !ends || *times > kMostNodes - tasks.size()) {
      return Error(fmt::format("\"{}\": expected numbers of tasks, such as \"2(x3),1\"", counts));
    }
    left.remove_prefix(left.empty() ? 0 : 1);
    tasks.insert(tasks.end(), *times, *count);
  }
  return tasks;
}

Result<std::optional<Placement>> placement_in_slurm(
    std::size_t processes, const Environment& environment,
    const std::function<Result<std::string>(const std::string& expression)>& names_of) {
  const char* const nodes = environment("SLURM_JOB_NODELIST");
  const char* const counts = environment("SLURM_TASKS_PER_NODE");
  if (nodes == nullptr || counts == nullptr) {
    return std::optional<Placement>();
  }
  const auto names = names_of(nodes);
  if (!names) {
    return names.error();
  }
  const auto tasks = tasks_by_node(counts);
  if (!tasks) {
    return tasks.error().within("SLURM_TASKS_PER_NODE");
  }
  std::string list;
  std::istringstream lines(*names);
  std::string name;
  for (std::size_t node = 0; node < tasks->size() && std::getline(lines, name); ++node) {
    list += fmt::format("{} slots={}\n", name, (*tasks)[node]);
  }
  auto hosts = hosts_in(list, processes);
  if (!hosts) {
    return hosts.error().within(fmt::format("the allocation of Slurm on {}", nodes));
  }
  // A step beside that of the caller, which may use what the job has on that node, and which is not
  // ended because a process in it failed.
  return std::optional(
      Placement{.hosts = *std::move(hosts),
                .agent = {"srun", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none",
                          "--cpu-bind=none", "--kill-on-bad-exit=0", "--quiet", "--nodelist"},
                .shell = {"sh", "-c"}});
}

}  // namespace sluice::cli
