#include "cli/commands.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "cli/train_report.h"
#include "session/process_group.h"

namespace sluice::cli {
namespace {

int train(ProcessGroup& group, Settings settings) {
  const auto dictated = dictate_workers(group, settings);
  if (const std::string note = note_on(servers_apart(settings), settings.text("preset"));
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
