#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "cli/train_report.h"
#include "session/process_group.h"

namespace sluice::cli {
namespace {

// If a launcher started the processes, the last ones have the servers, if these have hosts of their
// own, and the others one worker each, or several.
Result<void> dictate_workers(const ProcessGroup& group, Settings& settings) {
  if (!group.own_host()) {
    return {};
  }
  const auto size = static_cast<std::int64_t>(group.size());
  const auto servers = static_cast<std::int64_t>(servers_apart(settings).servers);
  const std::int64_t for_servers = servers / settings.integer("servers-per-host");
  if (for_servers >= size) {
    return Error(
        fmt::format("servers: {} of {} processes would have servers only, and none is left for "
                    "workers; start more processes, or take fewer servers (--servers 0: beside "
                    "the workers)",
                    for_servers, size));
  }
  const std::int64_t with_workers = size - for_servers;
  const std::int64_t each = settings.integer("workers-per-host");
  return settings.dictate(
      "workers", with_workers * each,
      fmt::format("{} processes were started{} with {} worker{} each; leave --workers out, or "
                  "start as many as it needs",
                  with_workers,
                  for_servers == 0 ? "" : fmt::format(", besides {} for servers,", for_servers),
                  each, each == 1 ? "" : "s"));
}

int train(ProcessGroup& group, Settings settings) {
  const auto dictated = dictate_workers(group, settings);
  if (const std::string note = servers_apart(settings).note(settings.text("preset"));
      dictated && group.is_leader() && !note.empty()) {
    session_log().info(note);
  }
  return train_and_report(group, dictated ? train_spec(settings) : dictated.error(), settings);
}

}  // namespace

int train(const Settings& settings) {
  const auto group = join_processes(warn, fail);
  if (!group) {
    return failed(group.error());
  }
  return run_in(**group, [&] { return train(**group, settings); });
}

}  // namespace sluice::cli
