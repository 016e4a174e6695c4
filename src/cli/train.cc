#include "cli/checkpoint_settings.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network.h"
#include "cli/specs.h"
#include "cli/train_report.h"
#include "session/process_group.h"

namespace sluice::cli {
namespace {

Result<TrainSpec> checked_spec(const Result<void>& dictated, const Settings& settings) {
  if (!dictated) {
    return dictated.error();
  }
  if (transport_choice(settings).kind == TransportKind::kTcp && settings.strategy().driver_sums()) {
    return Error(
        "--transport tcp: MPI or shared memory makes the sums; choose another --collective, or "
        "leave --transport out");
  }
  auto checkpoint = checkpoint_spec(settings);
  if (!checkpoint) {
    return checkpoint.error();
  }
  auto spec = train_spec(settings);
  if (!spec) {
    return spec;
  }
  TrainSpec whole = *std::move(spec);
  whole.checkpoint = *std::move(checkpoint);
  return whole;
}

int train(ProcessGroup& group, Settings settings) {
  const auto dictated = dictate_workers(group, settings);
  if (const std::string note = note_on(servers_apart(settings), settings.text("preset"));
      dictated && group.is_leader() && !note.empty()) {
    session_log().info(note);
  }
  group.carry_by(transport_choice(settings));
  return train_and_report(group, checked_spec(dictated, settings), settings);
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
