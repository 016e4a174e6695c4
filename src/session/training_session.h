#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/log.h"
#include "session/nonfinite.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/specs.h"
#include "session/training.h"
#include "session/workload.h"

namespace sluice {

// How a run ended.
struct TrainReport {
  // Of the leader; the other processes' are empty.
  nlohmann::ordered_json summary = {};
  std::string folder = {};  // of the record
  // The same in every process:
  std::optional<int> stopped = {};  // the signal that ended the run before its end
  std::optional<Error> fault = {};  // what could not be written
};

// One training run, from its spec to its record.
class TrainingSession {
 public:
  // Finds whatever is wrong with what was asked for, before anything is computed, and makes the
  // folders. All processes of the group must have the same settings. The same answer in every
  // process.
  static Result<TrainingSession> prepare(ProcessGroup& group, const Result<TrainSpec>& spec,
                                         const Agreement& settings, const Log& log);

  // Trains, keeps the model and writes the record. SIGINT and SIGTERM stop the training after the
  // iterations in progress; a second one ends the process at once. Throws what ends the training.
  TrainReport run();

 private:
  TrainingSession(ProcessGroup& group, TrainSpec spec, Workload work, Record record, Log log);

  // As far as one process can tell.
  static Result<TrainingSession> prepare(ProcessGroup& group, const TrainSpec& spec,
                                         const Log& log);
  void prepare_engine();
  std::vector<std::unique_ptr<Learner>> make_learners() const;
  Job make_job(const std::vector<Layer>& layers) const;
  // When it returns, the clocks of all processes start together.
  void begin_together(Learner& evaluator) const;
  // Sums the counters of all processes; the leader's record takes up what the others have seen.
  Counters collect(const Counters& own);
  // Keeps the model, before anything else that can fail or take long, and evaluates it unless the
  // run was stopped.
  Result<void> end_training(const std::string& stopped, Learner& evaluator, Journal& journal) const;
  OnNonFinite on_nonfinite(const std::vector<Layer>& layers) const;
  // All end as the leader does.
  void agree_on_end(const Result<void>& kept, std::optional<int> stopped,
                    TrainReport& report) const;

  ProcessGroup& group_;
  TrainSpec spec_;
  Workload work_;
  Record record_;
  Log log_;
  UpdateRule rule_;
  Topology topology_;
  std::vector<std::string> hosts_;  // names, by rank
  std::string kernels_;             // that a real model computes with, once they are chosen
};

}  // namespace sluice
