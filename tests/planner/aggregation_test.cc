#include "planner/aggregation.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <tuple>
#include <vector>

#include "nodes/presets.h"
#include "planner/tuning.h"
#include "support/nets.h"
#include "support/simulated.h"

namespace sluice {
namespace {

using testing::anywhere;
using testing::profile_of;

Job job_at(double gbps, const Topology& topology, const std::string& preset = "p3") {
  Job job;
  job.layers = lay_out({"a", "b"}, {3'000'000, 5'000'000});
  job.topology = topology;
  job.strategy = find_preset(preset)->strategy;
  job.link = {.startup = from_us(50), .ns_per_byte = 8 / gbps, .reduce_ns_per_byte = 0.1};
  return job;
}

const Topology kProcesses(4, 1, 0, 2);  // two machines with two processes each
const Topology kInOneProcess(2, 2, 0);

TEST(AggregationPays, WhereWorkersOfAMachineShareASlowLink) {
  for (const char* preset : {"p3", "kvstore", "slicing", "wfbp", "p3-allreduce", "ar-sgd"}) {
    EXPECT_TRUE(aggregation_pays(job_at(10, kProcesses, preset))) << preset;
    EXPECT_TRUE(aggregation_pays(job_at(10, kInOneProcess, preset))) << preset;
  }
}

TEST(AggregationPays, NotWhereNothingLeavesAMachineAsOne) {
  EXPECT_FALSE(aggregation_pays(job_at(1, Topology(4, 1, 0))));
  EXPECT_FALSE(aggregation_pays(job_at(1, Topology(4, 1, 0, 4)))) << "one machine";
  EXPECT_FALSE(aggregation_pays(job_at(1, Topology(1, 4, 0)))) << "one process";
}

TEST(AggregationPays, NotWhereTheLinkIsFasterThanTheWorkerThatAdds) {
  EXPECT_TRUE(aggregation_pays(job_at(25, kProcesses)));
  EXPECT_FALSE(aggregation_pays(job_at(200, kProcesses)));
  EXPECT_TRUE(aggregation_pays(job_at(100, kInOneProcess))) << "workers lend what they add";
}

TEST(AggregationPays, NotWhereItIsNotPossible) {
  for (const char* preset : {"asp", "easgd", "gosgd", "pipe-sgd", "diloco", "ar-sgd+dgc"}) {
    EXPECT_FALSE(aggregation_pays(job_at(1, kProcesses, preset))) << preset;
  }
  Job native = job_at(1, kProcesses, "wfbp");
  native.strategy.collective = Collective::kNative;
  EXPECT_FALSE(aggregation_pays(native));
  Job packed = job_at(1, kProcesses);
  packed.strategy.learners_pack = true;
  EXPECT_FALSE(aggregation_pays(packed)) << "codes cannot be added";
}

TEST(AggregationPays, TheUserHasTheLastWord) {
  Job job = job_at(1, kProcesses);
  tune_for_link(job, {.local_aggregation = true});
  EXPECT_FALSE(job.strategy.local_aggregation);
  tune_for_link(job, {});
  EXPECT_TRUE(job.strategy.local_aggregation);
}

struct Cell {
  Profile profile;
  Cluster cluster;
  Strategy strategy;
};

Cell any_cell() {
  Cell cell;
  std::vector<std::int64_t> params;
  for (std::int64_t layers = *anywhere(3, 8); layers > 0; --layers) {
    params.push_back(*anywhere(1'000, 400'000));
  }
  cell.profile = profile_of(params, static_cast<double>(*anywhere(100, 1000)),
                            static_cast<double>(*anywhere(200, 2000)));
  const auto machines = static_cast<std::size_t>(*anywhere(2, 5));
  const auto workers = static_cast<std::size_t>(*anywhere(2, 4));
  cell.cluster.topology = Topology(machines, workers, *rc::gen::element<std::size_t>(0, 0, 1));
  cell.cluster.bandwidth_gbps = static_cast<double>(*anywhere(1, 40));
  cell.cluster.latency = from_us(20);
  const auto* const preset =
      *rc::gen::element("p3", "slicing", "kvstore", "wfbp", "p3-allreduce", "ps-sync");
  cell.strategy = find_preset(preset)->strategy;
  if (!cell.strategy.uses_servers()) {
    cell.cluster.topology = Topology(machines, workers, 0);
  }
  cell.strategy.slice_params = 20'000;
  return cell;
}

double iteration_us(const Cell& cell, bool together) {
  Strategy strategy = cell.strategy;
  strategy.local_aggregation = together;
  return to_us(
      testing::run_simulated(cell.profile, cell.cluster, strategy, 6).result.iteration_time());
}

// The prediction is of the busiest link, not of the whole time line: the sample is fixed.
TEST(AggregationPays, WhatItSaysIsRarelyWrongInTheSimulator) {
  rc::Random random(1);
  int pays = 0;
  for (int i = 0; i < 60; ++i) {
    const Cell cell = rc::gen::exec([] { return any_cell(); })(random.split(), 100).value();
    const Job job = testing::job_for(cell.profile, cell.cluster, cell.strategy);
    const double apart = iteration_us(cell, false);
    const double together = iteration_us(cell, true);
    const bool said = aggregation_pays(job);
    pays += said ? 1 : 0;
    EXPECT_LE(said ? together : apart, 1.03 * (said ? apart : together))
        << i << ": " << apart << " and " << together << " us";
  }
  EXPECT_GE(pays, 20);
}

}  // namespace
}  // namespace sluice
