// Runs real MPI jobs on this machine: toy learners with toy_program.cc, and the program itself.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "drivers/mpi/mpi_jobs.h"
#include "nodes/presets.h"
#include "support/short_training.h"
#include "support/skip.h"
#include "support/threaded.h"
#include "support/toy_job.h"
#include "support/whole_numbers.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class MpiPresetTest : public MpiTest, public ::testing::WithParamInterface<Preset> {};
INSTANTIATE_TEST_SUITE_P(, MpiPresetTest, ::testing::ValuesIn(presets()), preset_name);

// Presets whose result does not depend on timing end with the same bits as on threads; the others
// just end.
TEST_P(MpiPresetTest, Trains) {
  const Preset& preset = GetParam();
  const Outcome outcome = toys(fmt::format("{} {}", preset.name, kIterations));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (is_deterministic(preset.strategy)) {
    const auto learners = testing::toy_learners(testing::kToyLayers, kProcesses);
    EXPECT_EQ(lines_of(outcome.out),
              hashes_on_threads(learners, testing::toy_strategy(std::string(preset.name))));
  } else {
    EXPECT_THAT(lines_of(outcome.out), SizeIs(kProcesses));
  }
}

// With few iterations no value has more digits than a float.
TEST_F(MpiTest, NoSwapIsLostAtTheEnd) {
  const Outcome outcome = toys("ad-psgd 8 0 still");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

class MpiSumsTest : public MpiTest,
                    public ::testing::WithParamInterface<std::tuple<int, std::string>> {};
INSTANTIATE_TEST_SUITE_P(Processes, MpiSumsTest,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values("native", "shared-memory")),
                         [](const auto& of) {
                           return fmt::format(
                               "{}of{}", std::get<1>(of.param) == "native" ? "native" : "memory",
                               std::get<0>(of.param));
                         });

// The result must not depend on who sums: in other groups, or with sums of several iterations in
// flight.
TEST_P(MpiSumsTest, EndsWithTheSumsOfAnyOther) {
  const auto& [processes, collective] = GetParam();
  for (const std::string by :
       {"wfbp:slice:", "single:whole:", "mg-wfbp:merged:", "pipe-sgd:layer:"}) {
    const std::string words = by + collective;
    SCOPED_TRACE(words);
    const Outcome outcome =
        mpirun(processes, fmt::format("'" SLUICE_MPI_TOY "' {} {}", words, kIterations), folder_);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    Strategy strategy = testing::toy_strategy(words);
    strategy.collective.reset();
    const auto learners =
        testing::whole_numbers(testing::kToyLayers, static_cast<std::size_t>(processes));
    EXPECT_EQ(lines_of(outcome.out), hashes_on_threads(learners, strategy));
  }
}

TEST_F(MpiTest, TheSummaryTellsWhoHasSummed) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 3000, "forward_us": 0, "backward_us": 0},
      {"name": "b", "params": 20000, "forward_us": 0, "backward_us": 0}]})");
  const std::string task =
      "train --model replay:net.json --iterations 12 --json --collective native ";
  const Outcome by_layer = sluice(task + "--preset wfbp --run by-layer");
  ASSERT_EQ(by_layer.code, 0) << by_layer.err;
  const auto mechanism = nlohmann::json::parse(by_layer.out).at("mechanism");
  EXPECT_EQ(mechanism.at("chunks_by_collective"), nlohmann::json({{"native", 2}}));
  EXPECT_EQ(mechanism.at("messages"), 12 * 2 * kProcesses);
  EXPECT_EQ(mechanism.at("sent_by_kind"),
            nlohmann::json(
                {{"allreduce",
                  {{"messages", 12 * 2 * kProcesses}, {"bytes", 12 * 23'000 * 4 * kProcesses}}}}));
  const Outcome merged = sluice(task + "--preset mg-wfbp --run merged");
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_FALSE(nlohmann::json::parse(merged.out).at("merging").at("groups").empty());
  const auto collectives = [&](const std::string& settings) {
    const Outcome outcome =
        sluice("train --model replay:net.json --iterations 3 --json " + settings);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("mechanism").at("chunks_by_collective");
  };
  EXPECT_EQ(collectives("--preset wfbp"), nlohmann::json({{"shared-memory", 2}}));
  EXPECT_FALSE(collectives("--preset p3-allreduce").contains("shared-memory"));
}

// Steps are timed when they are done, not when rank 0 learns of them, an iteration later.
TEST_F(MpiTest, AnIterationLastsAsLongAsItsCompute) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 10, "forward_us": 100000, "backward_us": 100000}]})");
  const Outcome outcome = sluice("train --model replay:net.json --iterations 4 --json --run run");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(nlohmann::json::parse(outcome.out).at("iteration_us"), 0.75 * 200'000);
}

TEST_F(MpiTest, WhatTheDriverCannotSumIsRefused) {
  const auto refusal = [&](const std::string& settings) {
    const Outcome outcome = sluice("train --data synthetic --collective native " + settings);
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(refusal("--preset p3"), HasSubstr("take exchange allreduce"));
  EXPECT_THAT(refusal("--preset p3-allreduce"), HasSubstr("take order fifo"));
  EXPECT_THAT(refusal("--preset pipe-sgd+q"), HasSubstr("take codec none"));
  EXPECT_THAT(refusal("--preset wfbp --local-aggregation"), HasSubstr("leave --local-aggregation"));
  EXPECT_THAT(refusal("--preset wfbp --workers-per-host 2"), HasSubstr("leave --workers-per-host"));
}

TEST_F(MpiTest, AFailureEndsAllAndNamesTheRank) {
  const Outcome outcome = toys("p3 1000000 2 throw");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("rank 2: the learner has had enough"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("memory was freed")));
}

TEST_F(MpiTest, ADeathEndsAll) {
  const Outcome outcome = toys("p3 1000000 2 kill");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr(uses_open_mpi() ? "rank 2" : "signal 9"));
}

TEST_F(MpiTest, ASilentProcessEndsAllAndIsNamed) {
  const Outcome outcome = toys("p3 1000000 2 stop");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_THAT(outcome.err, HasSubstr("rank 2"));
  EXPECT_THAT(outcome.err, HasSubstr("has not been heard of"));
}

// The process has its last parameters and has said so, while another one is at its last step.
TEST_F(MpiTest, ASilentProcessIsNoticedAfterTheLastStepToo) {
  const Outcome outcome = toys("p3 5 2 late");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_THAT(outcome.err, HasSubstr("rank 2"));
  EXPECT_THAT(outcome.err, HasSubstr("has not been heard of"));
}

// After training, rank 0 waits for the others and they wait for rank 0.
TEST_F(MpiTest, ASilentProcessIsNoticedAfterTraining) {
  for (const std::string fault : {"2 stop-trained", "0 stop-trained", "1 stop-leaving"}) {
    SCOPED_TRACE(fault);
    const Outcome outcome = toys("p3 5 " + fault);
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("rank {} has not been heard of", fault[0])));
  }
}

TEST_F(MpiTest, MpiDoesNotFinaliseForEver) {
  const Outcome outcome = toys("p3 5 2 stop-finalising");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_THAT(outcome.err, HasSubstr("MPI_Finalize does not return: another process has died"));
}

TEST_F(MpiTest, WhoIsBusyAfterTrainingIsNotLost) {
  for (const std::string rank : {"0", "3"}) {
    const Outcome outcome = toys("p3 5 " + rank + " busy");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(lines_of(outcome.out), SizeIs(kProcesses));
  }
}

TEST_F(MpiTest, AStallIsNamed) {
  const Outcome outcome = toys("p3 5 2 sleep");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("the gradient of rank 2"));
}

TEST_F(MpiTest, ABadMessageEndsAllAndNamesItsSender) {
  for (const auto& [strategy, fault, why] :
       {std::tuple{"p3", "babble", "it is about chunk 1000000"},
        {"p3", "misdeal", "chunk"},
        {"bsp+dgc", "garble", "position 4294967295"},
        {"ar-sgd+dgc", "garble", "position 4294967295"},
        {"p3", "repeat", "is not right"},
        {"wfbp:slice:ring", "repeat", "has come before"}}) {
    SCOPED_TRACE(fmt::format("{} {}", strategy, fault));
    const Outcome outcome = toys(fmt::format("{} 1000000 2 {}", strategy, fault));
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("a message of rank 2 is not right"));
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
}

TEST_F(MpiTest, WhatTheUserGotWrongIsSaidOnce) {
  const Outcome workers = sluice("train --workers 3 --data synthetic");
  EXPECT_EQ(workers.code, 2);
  const std::string complaint = "sluice: --workers: is 3 (from flag), but 4 processes were started";
  EXPECT_THAT(workers.err, HasSubstr(complaint));
  EXPECT_EQ(workers.err.find(complaint), workers.err.rfind(complaint));
}

TEST_F(MpiTest, DifferentSettingsAreRefusedByName) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 10, "forward_us": 0, "backward_us": 0}]})");
  // One command for all: the mpirun of Debian 13 crashes on two with a colon between them.
  const Outcome outcome = mpirun(kProcesses,
                                 std::string("sh -c '[ ") + kRankInScript +
                                     " != 3 ] || set -- --slice 7; exec \"" SLUICE_BINARY
                                     "\" train --model replay:net.json \"$@\"' sh",
                                 folder_);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("rank 3 on "));
  EXPECT_THAT(outcome.err, HasSubstr("has slice = 7, but rank 0 has 50000"));
}

TEST_F(MpiTrainTest, EndsWithTheBitsOfThreads) {
  for (const Preset& preset : presets()) {
    if (!is_as_on_threads(preset)) {
      continue;
    }
    SCOPED_TRACE(preset.name);
    const TemporaryFolder folder;
    const std::string training = short_training(preset, folder);
    const auto here = summary_of(run_command(threads(training), folder));
    const auto there = summary_of(mpirun(kProcesses, processes(training), folder));
    EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
    EXPECT_EQ(here.at("loss"), there.at("loss"));
    EXPECT_EQ(here.at("mechanism").at("sent_by_kind"), there.at("mechanism").at("sent_by_kind"));
    for (const auto& worker : there.at("by_worker")) {
      EXPECT_GT(worker.at("compute_s"), 0);
    }
  }
}

TEST_F(MpiTrainTest, SeveralWorkersShareAProcess) {
  const std::string training =
      short_training(*find_preset("p3"), folder_) + " --workers-per-host 2";
  const auto here = summary_of(run_command(threads(training), folder_));
  const auto there = summary_of(mpirun(2, processes(training), folder_));
  EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
  EXPECT_EQ(here.at("loss"), there.at("loss"));
  EXPECT_EQ(here.at("mechanism").at("local_messages"), there.at("mechanism").at("local_messages"));
  EXPECT_EQ(there.at("by_worker").size(), 4U);
}

// The gradients of one process and of its neighbours, as if all were threads of one host.
TEST_F(MpiTrainTest, AllWorkersOfAMachineSumTheirGradientsFirst) {
  const std::string training =
      short_training(*find_preset("wfbp"), folder_) + " --local-aggregation";
  const auto here = summary_of(run_command(threads(training + " --workers-per-host 4"), folder_));
  const auto there = summary_of(mpirun(2, processes(training + " --workers-per-host 2"), folder_));
  EXPECT_EQ(here.at("parameters_hash"), there.at("parameters_hash"));
  EXPECT_EQ(here.at("mechanism").at("gradients_summed_locally"),
            there.at("mechanism").at("gradients_summed_locally"));
}

// All processes meet for it, also one that has a server only.
TEST_F(MpiTrainTest, EvaluatesWhatNoWorkerHasAfterEachEpoch) {
  for (const auto& [preset, whose] :
       {std::pair{"asp --servers 1", "servers"}, std::pair{"ad-psgd", "mean of the workers"}}) {
    SCOPED_TRACE(preset);
    const TemporaryFolder folder;
    const auto summary = summary_of(
        mpirun(3,
               processes(fmt::format("train --model mlp --data synthetic --samples 96 "
                                     "--test-samples 16 --batch 4 --epochs 3 --json --preset {}",
                                     preset)),
               folder));
    ASSERT_EQ(summary.at("evaluations").size(), 3U);
    for (const auto& evaluation : summary.at("evaluations")) {
      EXPECT_EQ(evaluation.at("evaluated"), whose);
    }
  }
}

class MpiTrainPresetTest : public MpiTrainTest, public ::testing::WithParamInterface<Preset> {};
// One of each way to exchange: all presets train a model in a lab, and toys above.
INSTANTIATE_TEST_SUITE_P(, MpiTrainPresetTest,
                         ::testing::Values(*find_preset("p3"), *find_preset("wfbp"),
                                           *find_preset("mg-wfbp"), *find_preset("ar-sgd+dgc"),
                                           *find_preset("asp"), *find_preset("gosgd"),
                                           *find_preset("diloco")),
                         preset_name);

TEST_P(MpiTrainPresetTest, TrainsAModel) {
  const auto summary =
      summary_of(mpirun(kProcesses, processes(short_training(GetParam(), folder_)), folder_));
  if (GetParam().strategy.segment_params > 0) {
    EXPECT_GT(summary.at("network").at("segment"), Strategy().segment_params);
  }
  EXPECT_FALSE(summary.at("network").contains("gbps")) << "one machine has no links";
  const bool merged = GetParam().strategy.partition == Partition::kMerged;
  ASSERT_EQ(summary.contains("merging"), merged);
  if (merged) {
    EXPECT_FALSE(summary.at("merging").at("groups").empty());
    EXPECT_GT(summary.at("merging").at("iteration_us"), 0);
  }
}

}  // namespace
}  // namespace sluice
