#include "session/training_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "formats/document.h"
#include "nodes/presets.h"
#include "nodes/validate_update.h"
#include "session/batch_shares.h"
#include "session/collection.h"
#include "session/dedicated_servers.h"
#include "session/engine.h"
#include "session/loading.h"
#include "session/optimizer.h"
#include "session/train_checks.h"
#include "session/train_summary.h"

namespace sluice {
namespace {

// A folder that cannot be created should be reported before a long training, not after it.
Result<void> make_save_folder(const std::string& folder) {
  std::error_code failed;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, failed);
  }
  return failed ? Result<void>(Error(fmt::format("save: {}: the folder cannot be created: {}",
                                                 folder, failed.message())))
                : Result<void>();
}

Result<Record> open_record(const TrainSpec& spec, const std::string& workload,
                           const ProcessGroup& group) {
  if (!group.is_leader()) {
    return Record::without_folder(spec.record);
  }
  if (const auto made = make_save_folder(spec.save); !made) {
    return made.error();
  }
  if (const std::string& folder = spec.checkpoint.folder; !folder.empty()) {
    if (const auto made = CheckpointFolder(folder).create(); !made) {
      return made.error().within("checkpoint");
    }
  }
  return Record::open(spec.record, spec.strategy.preset + "-" + workload);
}

// "SIGINT after 120 of 500 iterations"; empty if nothing stopped the run.
std::string why_stopped(const Trained& trained, const Journal& journal, const Extent& extent) {
  return trained.stopped && journal.done() < extent.iterations
             ? fmt::format("{} after {} of {} iterations",
                           trained.stopped == kDivergedSignal ? "divergence"
                                                              : signal_name(*trained.stopped),
                           journal.done(), extent.iterations)
             : "";
}

}  // namespace

TrainingSession::TrainingSession(ProcessGroup& group, TrainSpec spec, Workload work, Record record,
                                 Log log)
    : group_(group),
      spec_(std::move(spec)),
      work_(std::move(work)),
      record_(std::move(record)),
      log_(std::move(log)),
      rule_(rule_of(spec_.optimizer, work_.extent)) {}

Result<TrainingSession> TrainingSession::prepare(ProcessGroup& group, const Result<TrainSpec>& spec,
                                                 const Agreement& settings, const Log& log) {
  group.note_beginning();
  auto own = spec ? prepare(group, *spec, log) : spec.error();
  const auto roster = check_in(group, settings, own ? Result<void>() : own.error());
  if (!roster) {
    return roster.error();
  }
  TrainingSession session = *std::move(own);
  const HostsSpec& hosts = session.spec_.hosts;
  const std::size_t with_workers = hosts.workers / hosts.workers_per_host;
  session.topology_ =
      group.topology().value_or(topology_of(hosts, per_machine(*roster, with_workers)));
  if (group.own_host() && group.is_leader()) {
    const bool apart = session.topology_.servers_apart();
    log.info(text_of(*roster) +
             (apart ? fmt::format("; servers from rank {} on", with_workers) : ""));
  }
  if (const auto& task = session.work_.task; task && task->start && group.is_leader()) {
    log.info("starting with the parameters of " + task->start->path);
  }
  session.hosts_ = roster->hosts;
  if (const auto valid =
          check_collective(session.spec_.strategy.strategy, session.topology_, group);
      !valid) {
    return valid.error();
  }
  if (const auto found = session.find_start(); !found) {
    session.record_.discard();
    return found.error();
  }
  return session;
}

Result<TrainingSession> TrainingSession::prepare(ProcessGroup& group, const TrainSpec& spec,
                                                 const Log& log) {
  if (const auto valid = check_spec(spec, group); !valid) {
    return valid.error();
  }
  if (workers_here(group, topology_of(spec.hosts, 1)).empty()) {
    return TrainingSession(group, spec, {}, Record::without_folder(spec.record), log);
  }
  auto work = std::visit(
      [&](const auto& of) { return make_workload(of, spec.length, dealing_of(spec), log); },
      spec.work);
  if (!work) {
    return work.error();
  }
  if (const auto fits = group.fits([&] { return work->factory(0)->layers(); }); !fits) {
    return fits.error();
  }
  auto record = open_record(spec, work->name, group);
  if (!record) {
    return record.error();
  }
  return TrainingSession(group, spec, *std::move(work), *std::move(record), log);
}

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
  if (group_.is_leader()) {
    journal.emplace(
        work_.extent, run_clock(clock), [&] { return model.learner().evaluate(); },
        record_.folder(), log_, [this] { return lost_workers(); });
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
                                       .evaluates = work_.task.has_value(),
                                       .model = group_.is_leader() ? &model : nullptr,
                                       .on_nonfinite = on_nonfinite(job.layers),
                                       .interrupted = interrupted_,
                                       .checkpoints = checkpoints.get(),
                                       .resumption = resumption_ ? &*resumption_ : nullptr,
                                       .log = log_});
  std::string stopped;
  Result<void> kept;
  if (group_.is_leader()) {
    note_merging(network, *journal, trained);
    stopped = why_stopped(trained, *journal, work_.extent);
    const EvaluatedModel evaluated = evaluated_model(trained.assembly.job.strategy);
    group_.attend([&] { kept = end_training(stopped, model.learner(), evaluated, *journal); });
  }
  trained.counters = collect(group_, record_, trained.counters);
  const nlohmann::ordered_json loading =
      work_.loader ? collect_loading(group_, work_.loader->tally()) : nlohmann::ordered_json();
  TrainReport report;
  const auto write_record = [&] {
    const std::string diverged = divergence_->why(job.layers, trained.stopped, journal->loss());
    report.summary =
        training_summary({spec_, work_, kernels_, trained, model.learner().parameters(), record_,
                          *journal, stopped, diverged, network, group_.network_use(), loading});
    add_mechanisms(checkpoints.get(), trained, report.summary);
    report.folder = record_.folder().path();
    if (const auto closed = record_.close(report.summary, hosts_); kept && !closed) {
      kept = closed;
    }
    if (kept && journal->error()) {
      kept = *journal->error();
    }
  };
  if (group_.is_leader()) {
    group_.attend(write_record);
  }
  const bool by_signal = !stopped.empty() && trained.stopped != kDivergedSignal;
  agree_on_end(kept, by_signal ? trained.stopped : std::nullopt, report);
  return report;
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
  const Trained trained = run_training(job, {.group = group_,
                                             .learners = {},
                                             .rule = rule_,
                                             .extent = work_.extent,
                                             .clock = clock,
                                             .record = &record_,
                                             .evaluates = has_task,
                                             .interrupted = interrupted_,
                                             .checkpoints = checkpoints.get(),
                                             .resumption = resumption_ ? &*resumption_ : nullptr});
  collect(group_, record_, trained.counters);
  if (has_task) {
    collect_loading(group_, {});
  }
  TrainReport report;
  agree_on_end({}, {}, report);
  return report;
}

void TrainingSession::share_outline(const std::vector<Layer>& layers) const {
  if (has_dedicated_servers(group_, topology_)) {
    group_.from_leader(group_.is_leader() ? to_text({layers, work_.extent}) : "",
                       "the outline of the run");
  }
}

void TrainingSession::agree_on_end(const Result<void>& kept, std::optional<int> stopped,
                                   TrainReport& report) const {
  const Json own{{"fault", kept ? "" : kept.error().message()}, {"stopped", stopped.value_or(0)}};
  const Json end = Json::parse(group_.from_leader(own.dump(), "the end of the run"));
  if (const std::string fault = end.at("fault"); !fault.empty()) {
    report.fault = Error(fault);
  }
  if (const int signal = end.at("stopped"); signal != 0) {
    report.stopped = signal;
  }
}

// The leader measures, and the others follow: all compute with the same kernels.
void TrainingSession::prepare_engine() {
  if (!work_.task) {
    return;
  }
  const TorchTask& task = *work_.task;
  const std::string_view own =
      group_.is_leader() ? name_of(kKernelsNames, choose_kernels(asked_kernels(), task, log_)) : "";
  kernels_ = group_.from_leader(std::string(own), "the choice of kernels");
  const auto kernels = value_of(kKernelsNames, kernels_);
  check(kernels.has_value(), "the leader has chosen kernels");
  if (!group_.is_leader()) {
    static_cast<void>(configure_engine(task, {}, *kernels));
  }
  if (*kernels != Kernels::kNative) {
    work_.factory = *make_torch_learners(with_kernels(task, *kernels));
  }
  share_batches();
}

void TrainingSession::share_batches() {
  if (!spec_.shares.by_speed) {
    return;
  }
  const std::vector<double> shares = batch_parts();
  if (!work_.task) {
    return;
  }
  work_.task->shares = shares;
  work_.extent.sharding = work_.task->sharding();
  work_.factory =
      *make_torch_learners(with_kernels(*work_.task, *value_of(kKernelsNames, kernels_)));
  if (group_.is_leader()) {
    log_.info("shares of the joined batch, by measured speed: " + text_of_shares(shares));
  }
}

std::vector<std::unique_ptr<Learner>> TrainingSession::make_learners() const {
  std::vector<std::unique_ptr<Learner>> learners;
  for (const std::size_t rank : workers_here(group_, topology_)) {
    learners.push_back(work_.factory(rank));
  }
  return learners;
}

// Some on the host and some on a device would differ in the last bits, and replicas would drift
// apart.
void TrainingSession::leave_to_learners(std::span<const std::unique_ptr<Learner>> learners,
                                        Strategy& strategy) const {
  const bool updates =
      (strategy.learners_can_update() || strategy.learners_can_step()) && rule_.elementwise();
  const bool packs = strategy.learners_can_pack() && (updates || strategy.sparse());
  const bool can = (updates || packs) && !group_.virtual_now() && all_on_devices(learners);
  strategy.learners_update = can && updates;
  strategy.learners_pack = can && packs;
}

bool TrainingSession::all_on_devices(std::span<const std::unique_ptr<Learner>> learners) const {
  const std::string yes = "yes";
  const auto can = [](const auto& learner) { return learner->can_update(); };
  const std::vector<std::string> answers =
      group_.to_leader(std::ranges::all_of(learners, can) ? yes : "no", "where to update");
  const auto agrees = [&](const std::string& answer) { return answer == yes; };
  return group_.from_leader(std::ranges::all_of(answers, agrees) ? yes : "no", "where to update") ==
         yes;
}

std::size_t TrainingSession::lost_workers() const {
  const auto lost = group_.lost();
  const auto has_workers = [&](std::size_t rank) { return rank < topology_.worker_hosts(); };
  return static_cast<std::size_t>(std::ranges::count_if(lost, has_workers)) *
         topology_.workers_per_host();
}

RunClock TrainingSession::run_clock(const Clock& clock) const {
  if (!group_.virtual_now()) {
    return {clock};
  }
  return {clock, [this] { return *group_.virtual_now(); }};
}

void TrainingSession::listen_for_signals() {
  if (!interrupted_) {
    interrupt_ = std::make_unique<Interrupt>();
    interrupted_ = [&signals = *interrupt_] { return signals.signal(); };
  }
  interrupted_ = [asked = std::move(interrupted_), &divergence = *divergence_] {
    const int signal = asked();
    return signal != 0 ? signal : divergence.first() ? kDivergedSignal : 0;
  };
}

// Replicas that differ at the start would never agree.
void TrainingSession::begin_together(Learner& replica) const {
  const std::string own = group_.size() > 1 ? parameters_hash(replica.parameters()) : "";
  if (group_.from_leader(own, "the hash of the initial parameters") != own) {
    throw std::runtime_error(
        "the model does not start with the parameters of rank 0; is its file the same on all "
        "hosts?");
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

OnNonFinite TrainingSession::on_nonfinite(const std::vector<Layer>& layers) const {
  if (!work_.task) {
    return {};  // a replay's gradients mean nothing
  }
  return sluice::on_nonfinite(spec_.on_nonfinite, layers, log_.warn, *divergence_);
}

}  // namespace sluice
