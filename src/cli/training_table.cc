#include "cli/training_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "report/table.h"
#include "session/loading.h"
#include "session/merging.h"

namespace sluice::cli {

namespace {

// Accuracy against epochs and against the seconds of a virtual clock.
std::string convergence_of(const OrderedJson& evaluations) {
  Table table({{"epoch", Table::Align::kRight},
               {"virtual s", Table::Align::kRight},
               {"test loss", Table::Align::kRight},
               {"test accuracy", Table::Align::kRight}});
  for (const auto& one : evaluations) {
    table.add_row({fmt::format("{:.2f}", one["epoch"].get<double>()),
                   fmt::format("{:.3f}", one["time_s"].get<double>()),
                   one["test_loss"].is_number()
                       ? fmt::format("{:.4f}", one["test_loss"].get<double>())
                       : one["test_loss"].dump(),
                   one.contains("test_accuracy")
                       ? fmt::format("{:.2f} %", one["test_accuracy"].get<double>() * 100)
                       : "-"});
  }
  return table.render();
}

void add_checkpoint_rows(const OrderedJson& summary, Table& table) {
  if (summary.contains("init")) {
    table.add_row({"started from", summary["init"].get<std::string>()});
  }
  for (const auto& [key, name] :
       {std::pair("lost_ranks", "ranks lost"), std::pair("joined_ranks", "ranks lost, and back")}) {
    if (summary.contains(key)) {
      const auto ranks = summary[key].get<std::vector<std::size_t>>();
      table.add_row({name, fmt::format("{}", fmt::join(ranks, ", "))});
    }
  }
  if (summary.contains("losses")) {
    for (const auto& loss : summary["losses"]) {
      table.add_row({fmt::format("  rank {} lost after", loss["rank"].get<std::size_t>()),
                     fmt::format("{:.1f} s: {}", loss["after_s"].get<double>(),
                                 loss["why"].get<std::string>())});
    }
  }
  if (summary.contains("restarts")) {
    for (const auto& start : summary["restarts"]) {
      table.add_row(
          {"started again after", fmt::format("{:.1f} s: {}", start["after_s"].get<double>(),
                                              start["why"].get<std::string>())});
    }
  }
  if (summary.contains("resumed")) {
    const auto& resumed = summary["resumed"];
    table.add_row({"resumed from", resumed["from"].get<std::string>()});
    if (resumed.contains("former_workers")) {
      table.add_row({"  re-sharded, workers before",
                     fmt::format("{}", resumed["former_workers"].get<std::int64_t>())});
    }
  }
  if (!summary.contains("checkpoints")) {
    return;
  }
  const auto& written = summary["checkpoints"];
  const int failed = written["failed"].get<int>();
  table.add_row(
      {"checkpoints", fmt::format("{} of {:.1f} MB in all, in {:.2f} s behind training",
                                  written["written"].get<int>(),
                                  static_cast<double>(written["bytes"].get<std::int64_t>()) / 1e6,
                                  written["background_s"].get<double>()) +
                          (failed > 0 ? fmt::format("; {} not written", failed) : "")});
  table.add_row({"  training held for", fmt::format("{:.3f} s", written["held_s"].get<double>())});
}

}  // namespace

void print_training(const OrderedJson& summary, const std::string& report) {
  const auto& mechanism = summary["mechanism"];
  const auto count = [&](const char* key) { return mechanism[key].get<std::int64_t>(); };
  Table table({{""}, {"", Table::Align::kRight}});
  if (summary.contains("stopped")) {
    table.add_row({"stopped by", summary["stopped"].get<std::string>()});
  }
  if (summary.contains("test_accuracy")) {
    table.add_row(
        {"test accuracy", fmt::format("{:.2f} %", summary["test_accuracy"].get<double>() * 100)});
  }
  if (summary.contains("test_loss") && !summary.contains("test_accuracy")) {
    table.add_row({"test loss", summary["test_loss"].dump()});
  }
  const bool is_virtual = summary.contains("clock");
  table.add_row({is_virtual ? "virtual time" : "training time",
                 fmt::format("{:.{}f} s", summary["train_s"].get<double>(), is_virtual ? 3 : 1)});
  if (is_virtual) {
    table.add_row({"  real time", fmt::format("{:.1f} s", summary["real_s"].get<double>())});
  }
  table.add_row(
      {"iteration", fmt::format("{:.3f} ms", summary["iteration_us"].get<double>() / 1000)});
  table.add_row({"samples/s", fmt::format("{:.0f}", summary["samples_per_s"].get<double>())});
  table.add_row(
      {"sent", fmt::format("{:.1f} MB in {} messages", static_cast<double>(count("bytes")) / 1e6,
                           count("messages"))});
  table.add_row({"chunks per model", fmt::format("{}", count("chunks_per_model"))});
  table.add_row({"chunks sent", fmt::format("{}", count("chunks_sent"))});
  if (mechanism.contains("outer_steps")) {
    table.add_row({"outer steps of chunks", fmt::format("{}", count("outer_steps"))});
  }
  table.add_row({"overtakings on the way out", fmt::format("{}", count("overtakings_egress"))});
  table.add_row({"overtakings in a server", fmt::format("{}", count("overtakings_inbox"))});
  table.add_row({"communication hidden behind compute",
                 fmt::format("{:.1f} %", mechanism["hidden_share"].get<double>() * 100)});
  add_checkpoint_rows(summary, table);
  if (summary.contains("loading")) {
    add_loading_rows(summary["loading"], table);
  }
  if (summary.contains("merging")) {
    add_rows(summary["merging"], table);
  }
  print(table.render());
  if (is_virtual && summary.contains("evaluations")) {
    print(convergence_of(summary["evaluations"]));
  }
  print(fmt::format("report in {}\n", report));
  if (summary.contains("saved")) {
    print(fmt::format("model in {}\n", summary["saved"].get<std::string>()));
  }
}

}  // namespace sluice::cli
