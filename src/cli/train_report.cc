#include "cli/train_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <utility>

#include "cli/console.h"
#include "cli/report.h"
#include "cli/specs.h"
#include "cli/training_table.h"
#include "report/progress.h"
#include "session/training_session.h"

namespace sluice::cli {

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

int train_and_report(ProcessGroup& group, const Result<TrainSpec>& spec, const Settings& settings) {
  Progress progress(
      std::cerr, isatty(STDERR_FILENO) != 0 ? Progress::Style::kTerminal : Progress::Style::kPlain);
  Log log = session_log();
  log.progress = &progress;
  log.lead = [&] { log_as_leader(settings.text("log-level")); };
  auto prepared = TrainingSession::prepare(group, spec, agreement_of(settings), log);
  if (!prepared) {
    return group.is_leader() ? bad_input(prepared.error()) : kBadInput;
  }
  TrainingSession session = *std::move(prepared);
  const TrainReport report = session.run();
  const auto print_report = [&] {
    const std::string page = report_of(report.folder);
    if (settings.on("json")) {
      print(report.summary);
    } else {
      print_training(report.summary, page);
    }
  };
  if (!report.summary.empty()) {
    group.attend(print_report);  // a pipe may be slow
  }
  if (report.fault) {
    return group.is_leader() ? failed(*report.fault) : kFailed;
  }
  return report.stopped ? 128 + *report.stopped : kOk;
}

}  // namespace sluice::cli
