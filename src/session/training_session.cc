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
  session.record_outline_ = group.from_leader(session.record_.outline(), "the record of the run");
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

void TrainingSession::share_outline(const std::vector<Layer>& layers) const {
  if (has_dedicated_servers(group_, topology_)) {
    group_.from_leader(group_.is_leader() ? to_text({layers, work_.extent}) : "",
                       "the outline of the run");
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

OnNonFinite TrainingSession::on_nonfinite(const std::vector<Layer>& layers) const {
  if (!work_.task) {
    return {};  // a replay's gradients mean nothing
  }
  return sluice::on_nonfinite(spec_.on_nonfinite, layers, log_.warn, *divergence_);
}

}  // namespace sluice
