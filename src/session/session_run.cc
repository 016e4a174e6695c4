// How a session trains, and what becomes of the run at its end.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "drivers/processes/joined_texts.h"
#include "session/collection.h"
#include "session/dedicated_servers.h"
#include "session/loading.h"
#include "session/optimizer.h"
#include "session/train_summary.h"
#include "session/training_record.h"
#include "session/training_session.h"

namespace sluice {
namespace {

constexpr const char* kEnd = "the end of the run";

// "SIGINT after 120 of 500 iterations"; empty if nothing stopped the run.
std::string why_stopped(const Trained& trained, const Journal& journal, const Extent& extent) {
  return trained.stopped && journal.done() < extent.iterations
             ? fmt::format("{} after {} of {} iterations",
                           trained.stopped == kDivergedSignal ? "divergence"
                                                              : signal_name(*trained.stopped),
                           journal.done(), extent.iterations)
             : "";
}

// What a process hands in at the end, and what the leader gets of all.
struct HandedIn {
  std::vector<std::string> parts;  // of the evaluated model
  std::vector<std::string> seen;
  std::vector<std::string> loading;
};

HandedIn handed_in(const std::vector<std::string>& texts) {
  HandedIn all;
  for (const std::string& text : texts) {
    std::vector<std::string> three = split(text);  // none of a lost process
    three.resize(3);
    all.parts.push_back(std::move(three[0]));
    all.seen.push_back(std::move(three[1]));
    all.loading.push_back(std::move(three[2]));
  }
  return all;
}

}  // namespace

TrainReport TrainingSession::run() {
  if (workers_here(group_, topology_).empty()) {
    return serve();
  }
  prepare_engine();
  const std::vector<std::unique_ptr<Learner>> learners = make_learners();
  Learner& replica = *learners.front();
  share_outline(replica.layers());
  NetworkFacts network;
  Job job = taken_up(tuned_job(replica.layers(), learners, network));
  begin_together(replica);
  RunModel model(replica, [this] { return work_.factory(0); });
  Clock clock;
  std::optional<Journal> journal;
  const auto keep_journal = [&] {
    journal.emplace(
        work_.extent, run_clock(clock), [&] { return model.learner().evaluate(); },
        record_.folder(), log_, [this] { return lost_workers(); });
  };
  const auto take_the_lead = [&](const std::vector<Iteration>& at) {
    if (const auto taken = take_over_record(record_, record_outline_, spec_, work_.name); !taken) {
      throw std::runtime_error("the record cannot go on: " + taken.error().message());
    }
    keep_journal();
    take_over(at, *journal);
    return &*journal;
  };
  if (group_.is_leader()) {
    keep_journal();
  }
  listen_for_signals();
  const auto checkpoints = make_checkpoints(clock);
  join(job, clock);
  Trained trained = run_training(job, {.group = group_,
                                       .learners = learners,
                                       .rule = rule_,
                                       .extent = work_.extent,
                                       .clock = clock,
                                       .record = &record_,
                                       .journal = journal ? &*journal : nullptr,
                                       .take_the_lead = take_the_lead,
                                       .evaluates = work_.task.has_value(),
                                       .model = &model,
                                       .on_nonfinite = on_nonfinite(job.layers),
                                       .interrupted = interrupted_,
                                       .checkpoints = checkpoints.get(),
                                       .resumption = resumption_ ? &*resumption_ : nullptr,
                                       .log = log_});
  TrainReport report;
  const auto make_result = [&](const std::vector<std::string>& texts) {
    if (!journal) {
      take_the_lead(trained.at);
    }
    std::string end;
    group_.attend([&] {
      end = make_result_of({job.layers, network, model, checkpoints.get(), *journal}, texts,
                           trained, report);
    });
    return end;
  };
  end_together(trained, make_result, report);
  return report;
}

// Takes part in everything that run() does with the whole group.
TrainReport TrainingSession::serve() {
  const bool has_task = std::holds_alternative<TaskSpec>(spec_.work);
  if (has_task) {
    kernels_ = group_.from_leader("", "the choice of kernels");
    share_batches();
  }
  const Outline outline = outline_from(group_.from_leader("", "the outline of the run"));
  work_.extent = outline.extent;
  work_.extent.first = resumption_ ? resumption_->first : 0;
  rule_ = rule_of(spec_.optimizer, work_.extent);
  NetworkFacts network;
  const Job job = taken_up(tuned_job(outline.layers, {}, network));
  group_.from_leader("", "the hash of the initial parameters");
  const Clock clock;
  listen_for_signals();
  const auto checkpoints = make_checkpoints(clock);
  const auto cannot_lead = [] { throw std::runtime_error("no process with workers is left"); };
  const Trained trained =
      run_training(job, {.group = group_,
                         .learners = {},
                         .rule = rule_,
                         .extent = work_.extent,
                         .clock = clock,
                         .record = &record_,
                         .take_the_lead = [&](const std::vector<Iteration>& /*at*/) -> Journal* {
                           cannot_lead();
                           return nullptr;
                         },
                         .evaluates = has_task,
                         .interrupted = interrupted_,
                         .checkpoints = checkpoints.get(),
                         .resumption = resumption_ ? &*resumption_ : nullptr});
  TrainReport report;
  const auto make_result = [&](const std::vector<std::string>& /*texts*/) {
    cannot_lead();
    return std::string();
  };
  end_together(trained, make_result, report);
  return report;
}

void TrainingSession::end_together(const Trained& trained, const Decide& make_result,
                                   TrainReport& report) const {
  const bool in_parts = is_in_parts(evaluated_model(trained.assembly.job.strategy));
  std::string own;
  group_.attend([&] {
    own = joined({in_parts ? trained.part : "", seen_by(group_, record_, trained.counters),
                  work_.loader ? text_of(work_.loader->tally()) : ""});
  });
  const Json end = Json::parse(group_.agree(own, make_result, kEnd));
  if (const std::string fault = end.at("fault"); !fault.empty()) {
    report.fault = Error(fault);
  }
  if (const int signal = end.at("stopped"); signal != 0) {
    report.stopped = signal;
  }
}

std::string TrainingSession::make_result_of(const Made& made, const std::vector<std::string>& texts,
                                            Trained& trained, TrainReport& report) {
  HandedIn all = handed_in(texts);
  if (!trained.part.empty()) {
    all.parts.at(group_.rank()) = trained.part;
    made.model.set(model_from(trained.assembly, all.parts));
  }
  note_merging(made.network, made.journal, trained);
  const std::string stopped = why_stopped(trained, made.journal, work_.extent);
  Result<void> kept = end_training(stopped, made.model.learner(),
                                   evaluated_model(trained.assembly.job.strategy), made.journal);
  if (work_.loader) {  // which the evaluation has used again
    all.loading.at(group_.rank()) = text_of(work_.loader->tally());
  }
  trained.counters = adopt(all.seen, group_, record_);
  const nlohmann::ordered_json loading =
      work_.loader ? loading_of(all.loading) : nlohmann::ordered_json();
  const std::string diverged = divergence_->why(made.layers, trained.stopped, made.journal.loss());
  report.summary = training_summary(
      {spec_, work_, kernels_, trained, made.model.learner().parameters(), record_, made.journal,
       stopped, diverged, made.network, group_.network_use(), loading});
  add_losses(group_, made.journal.clock().now(), trained.history);
  add_mechanisms(made.checkpoints, trained, report.summary);
  report.folder = record_.folder().path();
  if (const auto closed = record_.close(report.summary, hosts_); kept && !closed) {
    kept = closed;
  }
  if (kept && made.journal.error()) {
    kept = *made.journal.error();
  }
  const bool by_signal = !stopped.empty() && trained.stopped != kDivergedSignal;
  return Json{{"fault", kept ? "" : kept.error().message()},
              {"stopped", by_signal ? trained.stopped.value_or(0) : 0}}
      .dump();
}

void TrainingSession::note_merging(const NetworkFacts& network, const Journal& journal,
                                   Trained& trained) const {
  if (network.merging) {
    trained.merging = network.merging;
    trained.merging->groups = groups_of(trained.assembly);
    trained.merging->iteration = journal.steady_iteration();
  } else if (trained.assembly.job.strategy.partition == Partition::kMerged && !trained.merging) {
    log_.warn("the run was too short to measure the layers, and nothing was merged");
  }
}

Result<void> TrainingSession::end_training(const std::string& stopped, Learner& model,
                                           EvaluatedModel evaluated, Journal& journal) const {
  auto saved = spec_.save.empty() ? Result<void>() : model.save(spec_.save);
  if (stopped.empty()) {
    journal.on_boundary(work_.extent.iterations, evaluated);
  } else {
    journal.on_stop(stopped);
  }
  return saved;
}

// What was lost does not hold up the journal.
void TrainingSession::take_over(std::vector<Iteration> at, Journal& journal) {
  std::int64_t steps = 0;
  for (std::size_t w = 0; w < at.size(); ++w) {
    steps += at[w] - (work_.extent.starts.empty() ? work_.extent.first : work_.extent.starts[w]);
  }
  const auto is_lost = [&, lost = group_.lost()](std::size_t worker) {
    return std::ranges::find(lost, worker / topology_.workers_per_host()) != lost.end();
  };
  Iteration slowest = std::ranges::max(at);
  for (std::size_t w = 0; w < at.size(); ++w) {
    slowest = is_lost(w) ? slowest : std::min(slowest, at[w]);
  }
  for (std::size_t w = 0; w < at.size(); ++w) {
    at[w] = is_lost(w) ? slowest : at[w];
  }
  led_from_ = slowest;
  log_.lead();
  log_.info(fmt::format("rank {} leads now, and keeps the record in {} from iteration {} on",
                        group_.rank(), record_.folder().path().string(), slowest));
  journal.take_over(std::move(at), steps);
}

}  // namespace sluice
