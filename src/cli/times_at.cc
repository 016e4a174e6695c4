#include "cli/times_at.h"

#include <fmt/format.h>

#include "model/algorithm.h"

namespace sluice::cli {
namespace {

constexpr const char* kTimesAt = "times-at";

// Whether its workers wait for each other at fixed iterations.
bool learns_the_same_at_any_rate(const SimulatedSetup& setup) {
  const Algorithm algorithm = setup.job.strategy.algorithm;
  return traits_of(algorithm).replicas_agree() || algorithm == Algorithm::kLocal;
}

// What a training learned, with the times of a simulation.
OrderedJson retimed(const OrderedJson& trained, const OrderedJson& times) {
  const double seconds = times.at("iteration_us").get<double>() * 1e-6;
  OrderedJson summary;
  for (const char* key : {"preset", "iterations", "test_loss", "test_accuracy", "diverged"}) {
    if (trained.contains(key)) {
      summary[key] = trained.at(key);
    }
  }
  for (const char* key :
       {"iteration_us", "bytes_per_iteration", "egress_utilisation", "ingress_utilisation"}) {
    summary[key] = times.at(key);
  }
  summary["train_s"] = seconds * trained.at("iterations").get<double>();
  summary["times"] = "simulated";
  summary["evaluations"] = trained.value("evaluations", OrderedJson::array());
  for (OrderedJson& evaluation : summary["evaluations"]) {
    evaluation["time_s"] = seconds * evaluation.at("step").get<double>();
  }
  return summary;
}

}  // namespace

Result<Sweep> with_times(const Settings& settings, const Sweep& trainings) {
  const std::string text = settings.has(kTimesAt) ? settings.text(kTimesAt) : "";
  if (text.empty()) {
    return trainings;
  }
  const auto times = Sweep::parse(text);
  if (!times) {
    return times.error().within(fmt::format("--{}", kTimesAt));
  }
  for (const SweepAxis& axis : times->axes()) {
    if (settings.has(spelled(axis.key))) {
      return Error(fmt::format(
          "--{}: {} is a setting, expected keys of the cluster's file, such as bandwidth_gbps",
          kTimesAt, axis.key));
    }
  }
  auto all = trainings.each_with(*times);
  return all ? all : all.error().within(fmt::format("--{}", kTimesAt));
}

Result<void> check_times(const Sweep& all, const std::vector<SweepCell>& cells) {
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (!learns_the_same_at_any_rate(cells[c].setup)) {
      return Error(
          fmt::format("--{}: what {} learns depends on the times; make these axes part of --sweep",
                      kTimesAt, all.name(c)));
    }
    if (cells[c].settings.text("codec") == "auto") {
      return Error(fmt::format("--{}: codec auto depends on the rate; name a codec", kTimesAt));
    }
  }
  return {};
}

std::vector<OrderedJson> timed(const Sweep& all, const std::vector<SweepCell>& cells,
                               const std::vector<OrderedJson>& trained, std::size_t threads) {
  const std::size_t each = cells.size() / trained.size();
  std::vector<OrderedJson> summaries(cells.size());
  std::vector<Sweep::Group> untrained;
  for (Sweep::Group& group : all.groups_over("seed")) {
    if (group.cells.front() % each != 0) {
      untrained.push_back(std::move(group));
    }
  }
  for (std::size_t c = 0; c < cells.size(); c += each) {
    summaries[c] = trained[c / each];
  }
  const auto run = [&](std::size_t g) {
    const OrderedJson times = steady_summary(cells[untrained[g].cells.front()].setup);
    for (const std::size_t c : untrained[g].cells) {
      summaries[c] = retimed(trained[c / each], times);
    }
  };
  for_each_cell(untrained.size(), threads, run, [&](std::size_t finished) {
    show_cells_done(finished, untrained.size(), "simulations of times");
  });
  return summaries;
}

}  // namespace sluice::cli
