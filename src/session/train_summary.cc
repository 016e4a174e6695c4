#include "session/train_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "report/json_number.h"
#include "session/optimizer.h"

namespace sluice {
namespace {

// The sizes that were tuned to the network, what was measured of it, and how MPI was asked to carry
// long messages.
nlohmann::ordered_json network_summary(const Job& job, const NetworkFacts& facts) {
  nlohmann::ordered_json network{{"slice", job.strategy.slice_params},
                                 {"join", job.strategy.join_params},
                                 {"segment", job.strategy.segment_params},
                                 {"credit", job.strategy.credit},
                                 {"peer_credit", job.strategy.peer_credit}};
  if (facts.link) {
    network["gbps"] = facts.link->gbps();
    network["startup_us"] = to_us(facts.link->startup);
  }
  if (facts.carrier) {
    network["transport"] = name_of(kTransportNames, facts.carrier->kind());
    network["transport_threads"] = facts.carrier->threads;
  }
  if (facts.long_messages) {
    network["fragment_bytes"] = facts.long_messages->fragment_bytes;
    network["receiving_thread"] = facts.long_messages->receiving_thread;
    network["arithmetic_threads"] = job.server_threads;
  }
  return network;
}

nlohmann::ordered_json evaluations_of(const Journal& journal, const Extent& extent) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [iterations, trained, model, result] : journal.evaluations()) {
    all.push_back({{"step", iterations},
                   {"epoch", extent.epochs_in(iterations)},
                   {"samples",
                    std::llround(extent.samples_per_iteration() * static_cast<double>(iterations))},
                   {"time_s", to_seconds(trained)},
                   {"evaluated", name_of(kEvaluatedModelNames, model)},
                   {"test_loss", json_number(result.loss)}});
    if (result.accuracy) {
      all.back()["test_accuracy"] = *result.accuracy;
    }
  }
  return all;
}

nlohmann::ordered_json by_worker(const Tally& tally, std::size_t workers) {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t w = 0; w < workers; ++w) {
    const WorkerTally worker = tally.worker(w);
    all.push_back(
        {{"compute_s", to_seconds(worker.compute)}, {"waited_s", to_seconds(worker.waited)}});
  }
  return all;
}

// What the links of the hosts carried, and how long a message was on its way.
nlohmann::ordered_json by_host(const Tally& tally, const Topology& topology) {
  auto hosts = nlohmann::ordered_json::array();
  for (std::size_t h = 0; h < topology.hosts(); ++h) {
    const HostTally host = tally.host(HostId(h));
    Traffic sent;
    for (const Traffic& of_kind : host.sent) {
      sent += of_kind;
    }
    hosts.push_back({{"sent_bytes", sent.bytes},
                     {"egress_busy_s", to_seconds(host.egress_busy)},
                     {"ingress_busy_s", to_seconds(host.ingress_busy)}});
  }
  return hosts;
}

// How long the updates of an iteration wait for the norm, once all sums are there.
double norm_us(const Tally& tally, const Topology& topology, Iteration iterations) {
  Duration norms{0};
  for (std::size_t h = 0; h < topology.worker_hosts(); ++h) {
    norms += tally.host(HostId(h)).norms;
  }
  return to_us(norms / (static_cast<std::int64_t>(topology.workers()) * iterations));
}

// Of the whole run.
void add_use(const NetworkUse& use, const Journal& journal, nlohmann::ordered_json& summary) {
  const double seconds = to_seconds(journal.trained());
  const auto share = [&](Duration busy) { return seconds > 0 ? to_seconds(busy) / seconds : 0.0; };
  summary["bytes_per_iteration"] = static_cast<double>(use.bytes) /
                                   static_cast<double>(std::max<Iteration>(1, journal.mean_done()));
  summary["egress_utilisation"] = share(use.egress_busy);
  summary["ingress_utilisation"] = share(use.ingress_busy);
}

void add_accumulation(const TrainSpec& spec, const Extent& extent,
                      nlohmann::ordered_json& summary) {
  const std::int64_t parts =
      std::visit([](const auto& work) { return work.accumulate; }, spec.work);
  if (parts > 1) {
    summary["accumulate"] = parts;
    summary["micro_batch"] = extent.batch / parts;
  }
}

// The last loss, and all evaluations.
void add_results(const Journal& journal, const Extent& extent, nlohmann::ordered_json& summary) {
  if (journal.loss()) {
    summary["loss"] = json_number(*journal.loss());
  }
  add_evaluation(journal.evaluation(), summary);
  if (!journal.evaluations().empty()) {
    summary["evaluations"] = evaluations_of(journal, extent);
  }
}

void add_optimizer(const FinishedRun& run, Iteration iterations, nlohmann::ordered_json& summary) {
  const OptimizerSpec& spec = run.spec.optimizer;
  const Assembly& assembly = run.trained.assembly;
  summary["learning_rate"] = learning_rate_of(spec, run.work.extent);
  summary["optimizer"] = optimizer_summary(rule_of(spec, run.work.extent), assembly);
  if (spec.clip_norm > 0) {
    summary["optimizer"]["clip_norm_us"] =
        norm_us(run.record.tally(), assembly.job.topology, iterations);
  }
}

}  // namespace

void add_task(const TorchTask& task, const std::string& kernels, nlohmann::ordered_json& summary) {
  summary["device"] = task.device;
  summary["libtorch"] = torch_engine().version;
  summary["precision"] = name_of(kPrecisionNames, task.precision);
  if (is_model_file(task.model)) {
    summary["loss_function"] = name_of(kLossNames, task.loss);
  }
  if (task.device == "cpu") {
    summary["kernels"] = kernels;
  }
  if (task.start) {
    summary["init"] = task.start->path;
  }
  if (!task.shares.empty()) {
    summary["batch_shares"] = task.shares;
  }
}

void add_evaluation(const std::optional<Evaluation>& evaluation, nlohmann::ordered_json& summary) {
  if (!evaluation) {
    return;
  }
  summary["test_loss"] = json_number(evaluation->loss);
  if (evaluation->accuracy) {
    summary["test_accuracy"] = *evaluation->accuracy;
  }
}

std::string parameters_hash(std::span<const float> parameters) {
  return fmt::format("{:016x}", hash_of(std::as_bytes(parameters)));
}

nlohmann::ordered_json training_summary(const FinishedRun& run) {
  const auto& [spec, work, kernels, trained, parameters, record, journal, stopped, diverged,
               network, use, loading] = run;
  const Extent& extent = work.extent;
  const double iteration = to_seconds(journal.steady_iteration());
  const Iteration iterations = std::max<Iteration>(1, journal.mean_done());
  nlohmann::ordered_json summary{
      {"preset", spec.strategy.preset},
      {"model", work.name},
      {"parameters", total_params(trained.assembly.job.layers)},
      {"workers", extent.workers},
      {"batch", extent.batch},
      {"iterations", journal.done()},
      {"train_s", to_seconds(journal.trained())},
      {"samples_per_s", iteration > 0 ? extent.samples_per_iteration() / iteration : 0},
      {"iteration_us", iteration * 1e6}};
  add_accumulation(spec, extent, summary);
  if (journal.clock().is_virtual()) {
    summary["clock"] = "virtual";
    summary["real_s"] = to_seconds(journal.clock().real.now());
  }
  if (use) {
    add_use(*use, journal, summary);
  }
  if (!stopped.empty()) {
    summary["stopped"] = stopped;
  }
  if (!diverged.empty()) {
    summary["diverged"] = diverged;
  }
  if (work.task) {
    summary["data"] = name_of(kDataNames, std::get<TaskSpec>(spec.work).data.kind);
    add_task(*work.task, kernels, summary);
    summary["evaluated"] =
        name_of(kEvaluatedModelNames, evaluated_model(trained.assembly.job.strategy));
  }
  add_results(journal, extent, summary);
  summary["parameters_hash"] = parameters_hash(parameters);
  const Topology& topology = trained.assembly.job.topology;
  const RunTotals totals = record.totals(topology, trained.counters);
  if (const Iteration steady = extent.first + iterations - extent.steady_from(); steady > 0) {
    summary["breakdown"] = breakdown_of(totals, topology, steady);
  }
  summary["mechanism"] = mechanism_of(trained.assembly, totals);
  if (work.task && work.task->device != "cpu") {
    summary["device_copies"] = device_copies_of(record, topology, iterations);
  }
  summary["by_worker"] = by_worker(record.tally(), extent.workers);
  summary["by_host"] = by_host(record.tally(), topology);
  if (trained.merging) {
    summary["merging"] = to_json(*trained.merging);
  }
  if (!spec.save.empty()) {
    summary["saved"] = spec.save;
  }
  if (work.task) {
    add_optimizer(run, iterations, summary);
  }
  summary["network"] = network_summary(trained.assembly.job, network);
  if (!loading.is_null()) {
    summary["loading"] = loading;
  }
  return summary;
}

nlohmann::ordered_json loop_summary(const FinishedLoop& run) {
  const auto& [preset, name, extent, assembly, counters, record, journal, network] = run;
  const Topology& topology = assembly.job.topology;
  const double iteration = to_seconds(journal.steady_iteration());
  nlohmann::ordered_json summary{{"preset", preset},
                                 {"model", name},
                                 {"parameters", total_params(assembly.job.layers)},
                                 {"workers", extent.workers}};
  if (extent.batch > 0) {
    summary["batch"] = extent.batch;
  }
  summary["iterations"] = journal.done();
  summary["train_s"] = to_seconds(journal.ended());
  if (extent.batch > 0) {
    summary["samples_per_s"] = iteration > 0 ? extent.samples_per_iteration() / iteration : 0;
  }
  summary["iteration_us"] = iteration * 1e6;
  add_results(journal, extent, summary);
  const RunTotals totals = record.totals(topology, counters);
  if (const Iteration steady = journal.done() - extent.steady_from(); steady > 0) {
    summary["breakdown"] = breakdown_of(totals, topology, steady);
  }
  summary["mechanism"] = mechanism_of(assembly, totals);
  summary["mechanism"]["updates_on"] = "program";
  summary["by_worker"] = by_worker(record.tally(), extent.workers);
  summary["by_host"] = by_host(record.tally(), topology);
  summary["network"] = network_summary(assembly.job, network);
  return summary;
}

}  // namespace sluice
