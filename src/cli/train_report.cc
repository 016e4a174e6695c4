#include "cli/train_report.h"

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

int train_and_report(ProcessGroup& group, const Result<TrainSpec>& spec, const Settings& settings) {
  Progress progress(
      std::cerr, isatty(STDERR_FILENO) != 0 ? Progress::Style::kTerminal : Progress::Style::kPlain);
  Log log = session_log();
  log.progress = &progress;
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
  if (group.is_leader()) {
    group.attend(print_report);  // a pipe may be slow
  }
  if (report.fault) {
    return group.is_leader() ? failed(*report.fault) : kFailed;
  }
  return report.stopped ? 128 + *report.stopped : kOk;
}

}  // namespace sluice::cli
