// Runs exchange_program.cc as processes of an MPI job.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "report/page/run_data.h"
#include "report/page/run_page.h"
#include "support/mpirun.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class ExchangeMpiTest : public MpiJobTest {
 protected:
  Outcome run(int processes, const std::string& arguments) {
    return mpirun(processes, "'" SLUICE_EXCHANGE_PROGRAM "' " + arguments, folder_);
  }
};

class ExchangePresetMpiTest : public ExchangeMpiTest,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(ExchangePresetMpiTest, SumsComeBackLayerByLayer) {
  for (const int processes : {1, 3}) {
    const Outcome outcome = run(processes, std::string("steps ") + GetParam());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, std::to_string(processes) + " processes, 31 and 3 steps\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, ExchangePresetMpiTest,
                         ::testing::Values("wfbp", "p3-allreduce", "ar-sgd", "p3", "slicing",
                                           "kvstore", "tensorflow"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(ExchangeMpiTest, AProcessThatHasJoinedAddsZeros) {
  const Outcome outcome = run(3, "join p3");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "10 of 3; allgather while some processes are in join(): only sums, barriers and "
            "broadcasts from a process that has not joined can do without them\n");
}

// The names of all spans in a trace, each once.
std::set<std::string> spans_in(const std::string& trace) {
  std::set<std::string> names;
  const auto json = nlohmann::json::parse(trace);
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") {
      names.insert(event.at("name"));
    }
  }
  return names;
}

TEST_F(ExchangeMpiTest, TheRecordIsThatOfATrainingRun) {
  for (const auto& [processes, preset] : {std::pair{1, "p3"}, {3, "p3"}, {3, "wfbp"}}) {
    const std::string run_folder =
        (folder_.path() / fmt::format("{}-{}", preset, processes)).string();
    const Outcome outcome = run(processes, fmt::format("record {} {}", preset, run_folder));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(run_folder + ": "));
    const auto data = read_run(run_folder);
    ASSERT_TRUE(data) << data.error().message();
    ASSERT_EQ(data->steps.size(), 12U);
    EXPECT_EQ(data->steps.back().loss, (processes - 1) / 2.0);
    EXPECT_EQ(data->steps.back().samples, 12 * 4 * processes);
    EXPECT_EQ(data->number({"iterations"}), 12);
    EXPECT_EQ(data->number({"workers"}), processes);
    EXPECT_EQ(data->text({"preset"}), preset);
    EXPECT_THAT(data->text({"run", "command_line"}), HasSubstr("record"));
    EXPECT_TRUE(data->number({"breakdown", "computation_us"}));
    EXPECT_EQ(data->number({"mechanism", "messages"}) > 0, processes > 1);
    EXPECT_TRUE(write_report(run_folder));
    const auto trace = read_file(run_folder + "/trace.json");
    ASSERT_TRUE(trace);
    const std::set<std::string> spans = spans_in(*trace);
    EXPECT_TRUE(spans.contains("forward a") && spans.contains("backward c"));
    const auto has = [&](const char* what) {
      return std::ranges::any_of(spans, [&](const auto& name) { return name.starts_with(what); });
    };
    EXPECT_EQ(has("wait for "), processes > 1);
    if (preset == std::string("p3")) {
      EXPECT_EQ(has("push ") && has("sum "), processes > 1)
          << fmt::format("{}", fmt::join(spans, ", "));
    }
  }
}

TEST_F(ExchangeMpiTest, DifferentCallsAreNamedInAllProcesses) {
  const Outcome outcome = run(2, "differ");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 calls barrier, but rank 0 calls allreduce (sum) of 1 "
                                     "float64: all processes must make the same calls"));
}

TEST_F(ExchangeMpiTest, AProcessThatStopsStepsEndsAll) {
  const Outcome outcome = run(3, "end-early");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 has ended its training after 5 steps, but rank"));
}

TEST_F(ExchangeMpiTest, AProcessThatAbortsEndsAll) {
  const Outcome outcome = run(3, "abort");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
}

TEST_F(ExchangeMpiTest, AnUnsuitablePresetIsRefused) {
  const Outcome outcome = run(1, "unknown asp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no preset asp sums gradients for the program's own "
                                     "optimizer; choose one of "));
  EXPECT_THAT(outcome.err, HasSubstr("wfbp"));
}

}  // namespace
}  // namespace sluice
