#include "cli/train_summary.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "cli/console.h"
#include "cli/loading.h"
#include "report/table.h"

namespace sluice::cli {

std::string parameters_hash(std::span<const float> parameters) {
  return fmt::format("{:016x}", hash_of(std::as_bytes(parameters)));
}

OrderedJson training_summary(const TrainingRun& run) {
  const auto& [settings, work, kernels, trained, parameters, record, journal] = run;
  const Extent& extent = work.extent;
  const double iteration = to_seconds(journal.steady_iteration());
  OrderedJson workers = OrderedJson::array();
  for (std::size_t w = 0; w < extent.workers; ++w) {
    const WorkerTally of_worker = record.tally().worker(w);
    workers.push_back(
        {{"compute_s", to_seconds(of_worker.compute)}, {"waited_s", to_seconds(of_worker.waited)}});
  }
  OrderedJson summary{{"preset", settings.text("preset")},
                      {"model", work.name},
                      {"parameters", total_params(trained.assembly.job.layers)},
                      {"workers", extent.workers},
                      {"batch", extent.batch},
                      {"iterations", extent.iterations},
                      {"train_s", to_seconds(journal.trained())},
                      {"samples_per_s", extent.samples_per_iteration() / iteration},
                      {"iteration_us", iteration * 1e6}};
  if (work.task) {
    summary["data"] = settings.text("data");
    summary["device"] = work.task->device;
    if (summary["device"] == "cpu") {
      summary["kernels"] = kernels;
    }
    summary["loss"] = journal.loss();
  }
  if (const auto& evaluation = journal.evaluation()) {
    summary["test_loss"] = evaluation->loss;
    summary["test_accuracy"] = evaluation->accuracy;
  }
  summary["parameters_hash"] = parameters_hash(parameters);
  summary["breakdown"] = breakdown_of(record, trained.assembly.job.topology, extent.iterations);
  summary["mechanism"] = mechanism_of(trained.assembly, trained.counters, record.tally());
  if (work.task && work.task->device != "cpu") {
    summary["device_copies"] =
        device_copies_of(record, trained.assembly.job.topology, extent.iterations);
  }
  summary["by_worker"] = workers;
  if (trained.merging) {
    summary["merging"] = to_json(*trained.merging);
  }
  if (const std::string folder = settings.text("save"); !folder.empty()) {
    summary["saved"] = folder;
  }
  return summary;
}

void print_training(const OrderedJson& summary, const std::string& folder) {
  const auto& mechanism = summary["mechanism"];
  const auto count = [&](const char* key) { return mechanism[key].get<std::int64_t>(); };
  Table table({{""}, {"", Table::Align::kRight}});
  if (summary.contains("test_accuracy")) {
    table.add_row(
        {"test accuracy", fmt::format("{:.2f} %", summary["test_accuracy"].get<double>() * 100)});
  }
  table.add_row({"training time", fmt::format("{:.1f} s", summary["train_s"].get<double>())});
  table.add_row(
      {"iteration", fmt::format("{:.3f} ms", summary["iteration_us"].get<double>() / 1000)});
  table.add_row({"samples/s", fmt::format("{:.0f}", summary["samples_per_s"].get<double>())});
  table.add_row(
      {"sent", fmt::format("{:.1f} MB in {} messages", static_cast<double>(count("bytes")) / 1e6,
                           count("messages"))});
  table.add_row({"pieces a model", fmt::format("{}", count("chunks_a_model"))});
  table.add_row({"pieces sent", fmt::format("{}", count("chunks_sent"))});
  table.add_row(
      {"overtook another on the way out", fmt::format("{}", count("overtakings_egress"))});
  table.add_row({"overtook another in a server", fmt::format("{}", count("overtakings_inbox"))});
  table.add_row({"communication hidden behind compute",
                 fmt::format("{:.1f} %", mechanism["hidden_share"].get<double>() * 100)});
  if (summary.contains("loading")) {
    add_loading_rows(summary["loading"], table);
  }
  if (summary.contains("merging")) {
    add_rows(summary["merging"], table);
  }
  print(table.render());
  print(fmt::format("report in {}\n", folder));
  if (summary.contains("saved")) {
    print(fmt::format("model in {}\n", summary["saved"].get<std::string>()));
  }
}

OrderedJson network_summary(const Job& job, const MpiWorld* world) {
  OrderedJson network{{"slice", job.strategy.slice_params},
                      {"segment", job.strategy.segment_params},
                      {"credit", job.strategy.credit},
                      {"peer_credit", job.strategy.peer_credit}};
  if (world != nullptr && !job.topology.on_one_machine()) {
    network["gbps"] = job.link.gbps();
    network["startup_us"] = to_us(job.link.startup);
  }
  if (world != nullptr) {
    const LongMessages long_messages = world->long_messages();
    network["fragment_bytes"] = long_messages.fragment_bytes;
    network["receiving_thread"] = long_messages.receiving_thread;
  }
  return network;
}

}  // namespace sluice::cli
