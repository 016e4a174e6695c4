#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drivers/realtime/clock.h"
#include "drivers/realtime/phase.h"
#include "learners/learner.h"
#include "report/run_folder.h"
#include "session/evaluated_model.h"
#include "session/extent.h"
#include "session/log.h"

namespace sluice {

// What a run tells the time by: real time, or also the virtual time of a simulated run, which then
// is what steps and records have.
struct RunClock {
  const Clock& real;
  std::function<Time()> virtual_now = {};

  bool is_virtual() const { return static_cast<bool>(virtual_now); }
  Time now() const { return is_virtual() ? virtual_now() : real.now(); }
};

// An evaluation after this number of iterations.
struct Evaluated {
  Iteration iterations = 0;
  Duration trained{0};
  EvaluatedModel model = EvaluatedModel::kReplica;
  Evaluation result;
};

// Shows the progress of training and records it, one row per step. Calls come one at a time.
class Journal {
 public:
  // Evaluates the current model; nothing if there is no data to evaluate it with.
  using Evaluate = std::function<std::optional<Evaluation>()>;

  // How many workers the run goes on without.
  using Lost = std::function<std::size_t()>;

  Journal(const Extent& extent, RunClock clock, Evaluate evaluate, RunFolder& folder,
          const Log& log, Lost lost = {});

  // Another process has led the run until its workers were at these iterations and had taken so
  // many steps. Those that are lost count from where the slowest of the others is.
  void take_over(std::vector<Iteration> at, std::int64_t steps);

  void on_step(const StepReport& step);
  // So many workers that were lost are there again, and take part from this iteration on.
  void on_join(std::size_t workers, Iteration first) { joined_.emplace_back(workers, first); }
  // The model is complete after this number of iterations: evaluate it. `model` says what it is.
  void on_boundary(Iteration iterations, EvaluatedModel model);
  // The run has stopped early, for this reason.
  void on_stop(const std::string& why);

  // By all workers, and by the run that this one goes on with.
  Iteration done() const { return extent_.first + static_cast<Iteration>(ends_.size()); }
  // In this run, mean over the workers.
  Iteration mean_done() const {
    return std::llround(static_cast<double>(steps_) / static_cast<double>(extent_.workers));
  }

  // Of the last step, mean over the workers; none in a replay.
  std::optional<double> loss() const { return loss_; }
  // The last evaluation, if there was any, and all of them.
  const std::optional<Evaluation>& evaluation() const { return evaluation_; }
  const std::vector<Evaluated>& evaluations() const { return evaluations_; }
  Duration trained() const { return trained_at(clock_.now()); }  // without evaluations
  // When the last iteration ended that all workers have done; without evaluations.
  Duration ended() const { return ends_.empty() ? Duration(0) : ends_.back(); }
  const RunClock& clock() const { return clock_; }
  // Mean time of a steady iteration.
  Duration steady_iteration() const;
  const std::optional<Error>& error() const { return error_; }

 private:
  struct Reports {
    std::size_t count = 0;
    std::optional<double> loss;  // sum
    Time last{0};
  };

  Duration trained_at(Time moment) const {
    return moment - (moment < evaluated_from_ ? evaluated_before_ : evaluated_);
  }
  // Of the iteration, from workers that have not been lost.
  std::size_t expected(Iteration iteration) const;
  // All of these have come.
  void complete(Iteration iteration, const Reports& reports);
  void finish_progress();
  void append(const nlohmann::ordered_json& row);

  Extent extent_;
  RunClock clock_;
  Evaluate evaluate_;
  RunFolder& folder_;
  Lost lost_;
  const Log& log_;
  std::vector<std::pair<std::size_t, Iteration>> joined_;  // see on_join()
  std::map<Iteration, Reports> open_;  // iterations that not all workers have finished
  std::optional<double> loss_;
  std::optional<Evaluation> evaluation_;
  std::vector<Evaluated> evaluations_;
  std::int64_t steps_ = 0;      // of all workers
  std::int64_t samples_ = 0;    // in the iterations that all workers have done
  std::vector<Duration> ends_;  // of these iterations
  // Of evaluations: the total time, when the last one began, and the total before it.
  Duration evaluated_{0};
  Time evaluated_from_{0};
  Duration evaluated_before_{0};
  std::optional<Error> error_;  // the first failure to write
};

}  // namespace sluice
