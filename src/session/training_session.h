#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/realtime/interrupt.h"
#include "session/codec_choice.h"
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
  std::optional<int> stopped = {};  // the signal that stopped the run early
  std::optional<Error> fault = {};  // what could not be written
};

// One training run, from its spec to its record.
class TrainingSession {
 public:
  // Checks the settings before anything is computed, and creates the folders. All processes of the
  // group must have the same settings. The result is the same in every process.
  static Result<TrainingSession> prepare(ProcessGroup& group, const Result<TrainSpec>& spec,
                                         const Agreement& settings, const Log& log);

  // Trains, saves the model and writes the record. SIGINT and SIGTERM stop the training after the
  // iterations in progress; a second one ends the process at once. SIGPIPE is ignored as long as
  // the session lives. Throws if the training fails.
  TrainReport run();

  // Before run(): leaves signals alone, and stops the training when this returns one instead.
  void stop_when(std::function<int()> interrupted) { interrupted_ = std::move(interrupted); }

 private:
  TrainingSession(ProcessGroup& group, TrainSpec spec, Workload work, Record record, Log log);

  // Checks what one process can check.
  static Result<TrainingSession> prepare(ProcessGroup& group, const TrainSpec& spec,
                                         const Log& log);
  // In a process with servers only.
  TrainReport serve();
  // Tells processes with servers only what they serve.
  void share_outline(const std::vector<Layer>& layers) const;
  void prepare_engine();
  // Measures the speeds of all workers, if their batches depend on them. Collective.
  void share_batches();
  std::vector<std::unique_ptr<Learner>> make_learners() const;
  // Says in the strategy what learners do themselves, if those of all processes can. Collective.
  void leave_to_learners(std::span<const std::unique_ptr<Learner>> learners,
                         Strategy& strategy) const;
  bool all_on_devices(std::span<const std::unique_ptr<Learner>> learners) const;
  // That the run goes on without.
  std::size_t lost_workers() const;
  RunClock run_clock(const Clock& clock) const;
  Job make_job(const std::vector<Layer>& layers) const;
  // The same for the network, which is measured, and with the codec that pays there, if the spec
  // leaves the choice open. Collective.
  Job tuned_job(const std::vector<Layer>& layers,
                std::span<const std::unique_ptr<Learner>> learners, NetworkFacts& network);
  CodecChoice predicted_codec(const Job& job, const NetworkFacts& network) const;
  // These are in session_start.cc. Finds the checkpoint to go on from, if there should be one.
  // Collective.
  Result<void> find_start();
  // If others go on with a run, an epoch stays as long in iterations as it was, whatever they make
  // of the batch: so lengths, schedules and the iteration keep their meaning.
  void keep_epochs();
  // If this process takes the place of a lost one in a run that goes on, waits until it is let in,
  // and begins where the others are; the clock shows what theirs do.
  void join(Job& job, Clock& clock);
  // The same job from there on, with what was measured at the start of the run; and with learners
  // that pack, if all they pack fits.
  Job taken_up(Job job) const;
  void take_up(Job& job) const;
  std::optional<Kernels> asked_kernels() const;
  std::vector<double> batch_parts();  // collective
  CodecChoice chosen_codec(const Job& job, const NetworkFacts& network) const;
  // Null if there are none. Collective.
  std::unique_ptr<Checkpoints> make_checkpoints(const Clock& clock) const;
  // The choice of a codec, where the run began, and its checkpoints.
  void add_mechanisms(const Checkpoints* checkpoints, const Trained& trained,
                      nlohmann::ordered_json& summary) const;
  void listen_for_signals();
  // When it returns, the clocks of all processes start together.
  void begin_together(Learner& replica) const;
  // What a leader makes the result of the run from, besides what all hand in.
  struct Made {
    const std::vector<Layer>& layers;
    const NetworkFacts& network;
    RunModel& model;
    const Checkpoints* checkpoints;
    Journal& journal;
  };
  // These are in session_run.cc. All hand in what they have, and the leader makes the result of it;
  // if it is lost meanwhile, the next one does. Every process ends in the same way. Collective.
  void end_together(const Trained& trained, const Decide& make_result, TrainReport& report) const;
  // In the leader: the model is saved and evaluated, the record is written.
  std::string make_result_of(const Made& made, const std::vector<std::string>& texts,
                             Trained& trained, TrainReport& report);
  // Adds groups that were planned before the run; warns if there are none where there should be.
  void note_merging(const NetworkFacts& network, const Journal& journal, Trained& trained) const;
  // Saves the model, before anything else that can fail or take long, and evaluates it unless the
  // run was stopped.
  Result<void> end_training(const std::string& stopped, Learner& model, EvaluatedModel evaluated,
                            Journal& journal) const;
  // In a process that leads from now on, with workers at these iterations.
  void take_over(std::vector<Iteration> at, Journal& journal);
  OnNonFinite on_nonfinite(const std::vector<Layer>& layers) const;

  ProcessGroup& group_;
  TrainSpec spec_;
  Workload work_;
  Record record_;
  Log log_;
  UpdateRule rule_;
  Topology topology_;
  std::vector<std::string> hosts_;     // names, by rank
  std::string record_outline_;         // of the process that leads at first
  std::optional<Iteration> led_from_;  // by this process, if another one led before
  std::string kernels_;                // of a real model, once they are chosen
  std::optional<CodecChoice> codec_choice_;
  std::optional<Resumption> resumption_;
  std::function<int()> interrupted_;      // the signal that stops the run
  std::unique_ptr<Interrupt> interrupt_;  // from run() on, unless the caller has another
  std::unique_ptr<Divergence> divergence_ = std::make_unique<Divergence>();
};

}  // namespace sluice
