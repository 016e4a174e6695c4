#include "session/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/json_number.h"

namespace sluice {

Journal::Journal(const Extent& extent, RunClock clock, Evaluate evaluate, RunFolder& folder,
                 const Log& log, Lost lost)
    : extent_(extent),
      clock_(std::move(clock)),
      evaluate_(std::move(evaluate)),
      folder_(folder),
      lost_(std::move(lost)),
      log_(log) {}

void Journal::take_over(std::vector<Iteration> at, std::int64_t steps) {
  const Iteration first = std::ranges::min(at);
  for (Iteration done = extent_.first; done < first; ++done) {
    samples_ += extent_.samples_of(done);
  }
  steps_ = steps;
  extent_.first = first;
  extent_.starts = std::move(at);
}

// A worker reports its iterations in order, so they are completed in order, too. What comes of an
// iteration that was completed without a lost worker, which had reported it, is too late.
void Journal::on_step(const StepReport& step) {
  ++steps_;
  if (step.iteration < done()) {
    return;
  }
  Reports& reports = open_[step.iteration];
  if (step.loss) {
    reports.loss = reports.loss.value_or(0) + *step.loss;
  }
  reports.last = std::max(reports.last, step.at);
  ++reports.count;
  while (!open_.empty() && open_.begin()->second.count >= expected(open_.begin()->first)) {
    complete(open_.begin()->first, open_.begin()->second);
    open_.erase(open_.begin());
  }
}

std::size_t Journal::expected(Iteration iteration) const {
  std::size_t missing = lost_ ? lost_() : 0;
  for (const auto& [workers, first] : joined_) {
    missing += iteration < first ? workers : 0;
  }
  const std::size_t all = extent_.workers_in(iteration);
  return all - std::min(all, missing);
}

void Journal::complete(Iteration iteration, const Reports& reports) {
  loss_ = reports.loss;
  if (loss_) {
    *loss_ /= static_cast<double>(reports.count);
  }
  ends_.push_back(trained_at(reports.last));
  samples_ += extent_.samples_of(iteration);
  const ProgressState state{
      .epoch = extent_.epoch_of(iteration),
      .epochs = extent_.epoch_of(extent_.iterations - 1),
      .step = iteration + 1,
      .steps = extent_.iterations,
      .loss = loss_,
      .samples = samples_,
      .now = clock_.is_virtual() ? clock_.real.now() : ends_.back(),
      .virtual_now = clock_.is_virtual() ? std::optional(ends_.back()) : std::nullopt};
  nlohmann::ordered_json row{{"step", state.step}};
  if (!extent_.is_open) {
    row["epoch"] = state.epoch;
  }
  if (state.loss) {
    row["loss"] = json_number(*state.loss);
  }
  if (extent_.batch > 0) {
    row["samples"] = state.samples;
  }
  row["time_s"] = to_seconds(ends_.back());
  append(row);
  if (log_.progress != nullptr) {
    log_.progress->update(state);
  }
}

void Journal::on_boundary(Iteration iterations, EvaluatedModel model) {
  evaluated_from_ = clock_.now();
  evaluated_before_ = evaluated_;
  evaluation_ = evaluate_();
  evaluated_ += clock_.now() - evaluated_from_;
  finish_progress();
  if (evaluation_) {
    evaluations_.push_back({iterations, trained(), model, *evaluation_});
    nlohmann::ordered_json row{{"step", iterations},
                               {"epoch", extent_.epochs_in(iterations)},
                               {"test_loss", json_number(evaluation_->loss)}};
    if (evaluation_->accuracy) {
      row["test_accuracy"] = *evaluation_->accuracy;
    }
    row["evaluated"] = name_of(kEvaluatedModelNames, model);
    row["time_s"] = to_seconds(trained());
    append(row);
    log_.info(fmt::format(
        "after {} steps{}: {}", iterations,
        clock_.is_virtual() ? fmt::format(" and {:.3f} virtual seconds", to_seconds(trained()))
                            : "",
        evaluation_->accuracy ? fmt::format("test accuracy {:.2f} %", *evaluation_->accuracy * 100)
                              : fmt::format("test loss {:.6g}", evaluation_->loss)));
  }
}

void Journal::on_stop(const std::string& why) {
  evaluation_.reset();  // it was of earlier parameters
  finish_progress();
  log_.warn("stopped by " + why);
}

Duration Journal::steady_iteration() const {
  if (ends_.empty()) {
    return Duration(0);
  }
  const std::size_t half = ends_.size() / 2;
  const Duration half_time = half == 0 ? Duration(0) : ends_[half - 1];
  return (ends_.back() - half_time) / static_cast<std::int64_t>(ends_.size() - half);
}

void Journal::finish_progress() {
  if (log_.progress != nullptr) {
    log_.progress->finish();
  }
}

void Journal::append(const nlohmann::ordered_json& row) {
  if (const auto written = folder_.append_metrics(row); !written && !error_) {
    error_ = written.error();
  }
}

}  // namespace sluice
