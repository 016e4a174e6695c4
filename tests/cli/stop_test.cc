// How a training run of the program ends early: by signals, on threads and under mpirun, and by
// numbers that are not finite.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "nodes/presets.h"
#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr const char* kShortNet = R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":1000,"rows":20,"columns":40,"forward_us":500,"backward_us":500},
    {"name":"b","params":30,"forward_us":500,"backward_us":500}]})";

// Far more iterations than a test has time for.
std::string endless(const std::string& preset) {
  return "train --model replay:net.json --iterations 1000000 --json --run run --preset " + preset;
}

// In a shell: wait until a step has been recorded.
const std::string kAwaitStep =
    "for i in $(seq 1000); do [ -s run/metrics.jsonl ] && break; sleep 0.1; done";

// A shell makes its background processes ignore SIGINT.
std::string in_background(const std::string& arguments) {
  return "env --default-signal=INT,TERM '" SLUICE_BINARY "' " + arguments + " & pid=$!; ";
}

// What is written is as complete as at the end of any run.
void expect_stopped(const Outcome& outcome, const TemporaryFolder& folder, int code,
                    const std::string& signal) {
  ASSERT_EQ(outcome.code, code) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stopped by " + signal + " after "));
  const json summary = json::parse(outcome.out);
  json written = json::parse(folder.read("run/summary.json"));
  EXPECT_TRUE(written.contains("run"));
  written.erase("run");
  EXPECT_EQ(summary, written);
  const auto iterations = summary.at("iterations").get<std::int64_t>();
  EXPECT_EQ(summary.at("stopped"),
            fmt::format("{} after {} of 1000000 iterations", signal, iterations));
  const std::string metrics = folder.read("run/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), iterations);
  EXPECT_GE(iterations, 1);
  EXPECT_GT(summary.at("iteration_us"), 0);
  EXPECT_FALSE(json::parse(folder.read("run/trace.json")).empty());
}

TEST(StopCliThreadsTest, ASignalEndsAnyPresetWithItsRecord) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const TemporaryFolder folder;
    folder.write("net.json", kShortNet);
    const Outcome outcome =
        run_command(in_background(endless(std::string(preset.name)) + " --workers 3 --trace") +
                        kAwaitStep + "; kill -INT $pid; wait $pid",
                    folder);
    expect_stopped(outcome, folder, 130, "SIGINT");
  }
}

TEST(StopCliThreadsTest, SigtermHasItsOwnCode) {
  const TemporaryFolder folder;
  folder.write("net.json", kShortNet);
  const Outcome outcome = run_command(
      in_background(endless("p3 --trace")) + kAwaitStep + "; kill -TERM $pid; wait $pid", folder);
  expect_stopped(outcome, folder, 143, "SIGTERM");
}

TEST(StopCliThreadsTest, EitherSignalLeavesACheckpoint) {
  for (const auto& [signal, code] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
    const TemporaryFolder folder;
    folder.write("net.json", kShortNet);
    const Outcome outcome =
        run_command(in_background(endless("p3 --checkpoint kept --checkpoint-every 1h")) +
                        kAwaitStep + "; kill -" + signal + " $pid; wait $pid",
                    folder);
    ASSERT_EQ(outcome.code, code) << outcome.err;
    const json summary = json::parse(outcome.out);
    EXPECT_EQ(summary.at("checkpoints").at("written"), 1);
    EXPECT_TRUE(std::filesystem::exists(
        folder.path() / "kept" /
        fmt::format("iteration-{}", summary.at("iterations").get<std::int64_t>()) /
        "manifest.json"))
        << signal;
  }
}

// A step of this net takes so long that the second signal comes while the run is still stopping.
TEST(StopCliThreadsTest, ASecondSignalEndsAtOnce) {
  const TemporaryFolder folder;
  folder.write("net.json", R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":10,"forward_us":2500000,"backward_us":2500000}]})");
  const Outcome outcome = run_command(in_background(endless("p3")) + kAwaitStep +
                                          "; kill -INT $pid; sleep 0.6; kill -INT $pid; wait $pid",
                                      folder);
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(folder.read("run/summary.json"), "");
}

TEST(StopCliThreadsTest, AnIgnoredSignalStaysIgnored) {
  const TemporaryFolder folder;
  folder.write("net.json", kShortNet);
  const Outcome outcome =
      run_command("env --ignore-signal=INT '" SLUICE_BINARY
                  "' train --model replay:net.json --iterations 600 --json --run run & pid=$!; " +
                      kAwaitStep + "; kill -INT $pid; wait $pid",
                  folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("iterations"), 600);
}

class StopMpiTest : public MpiJobTest {
 protected:
  StopMpiTest() { folder_.write("net.json", kShortNet); }

  // Trains and runs `by` in a shell once a step is done; every rank has written its process id to
  // pid.RANK, and mpirun's is in mpirun.pid.
  Outcome interrupted(const std::string& preset, const std::string& by) const {
    // Between MPICH's launcher and a process there is a proxy.
    const std::string launcher =
        uses_open_mpi() ? "$PPID" : "$(cut -d \" \" -f 4 /proc/$PPID/stat)";
    return mpirun(3,
                  "sh -c 'echo " + launcher + " >mpirun.pid; echo $$ >pid." + kRankInScript +
                      "; exec \"" SLUICE_BINARY "\" " + endless(preset) + "' & job=$!; " +
                      kAwaitStep + "; " + by + "; wait $job",
                  folder_);
  }
};

// Whichever rank gets the signal, all processes stop at the same iteration.
TEST_F(StopMpiTest, ASignalToOneRankEndsAll) {
  for (const std::string preset : {"p3", "wfbp", "mg-wfbp", "ssp", "asp", "pipe-sgd", "ad-psgd"}) {
    SCOPED_TRACE(preset);
    std::filesystem::remove_all(folder_.path() / "run");
    const Outcome outcome = interrupted(preset + " --trace", "kill -TERM $(cat pid.2)");
    expect_stopped(outcome, folder_, 143, "SIGTERM");
  }
}

TEST_F(StopMpiTest, ASignalToAllRanksIsOneWish) {
  const Outcome outcome = interrupted("p3 --trace", "kill -TERM $(cat pid.*)");
  expect_stopped(outcome, folder_, 143, "SIGTERM");
}

// Open MPI's mpirun waits before it sends SIGTERM and again before SIGKILL: one second each, by
// default. MPICH's passes on the signal itself; a shell has made the job ignore SIGINT.
TEST_F(StopMpiTest, ASignalToMpirunIsPassedOn) {
  setenv("OMPI_MCA_odls_base_sigkill_timeout", "5", 1);
  setenv("PRTE_MCA_odls_base_sigkill_timeout", "5", 1);
  const std::string signal = uses_open_mpi() ? "INT" : "TERM";
  const Outcome outcome = interrupted("p3", "kill -" + signal + " $(cat mpirun.pid)");
  unsetenv("OMPI_MCA_odls_base_sigkill_timeout");
  unsetenv("PRTE_MCA_odls_base_sigkill_timeout");
  const json summary = json::parse(folder_.read("run/summary.json"));
  EXPECT_THAT(summary.at("stopped").get<std::string>(),
              MatchesRegex("SIGTERM after [0-9]+ of 1000000 iterations"));
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_NE(outcome.code, 0);
}

// A learning rate at which training must diverge.
Outcome diverge(const std::string& more, const TemporaryFolder& folder) {
  return run_command("'" SLUICE_BINARY
                     "' train --model mlp --data synthetic --workers 2 --iterations 60 --lr 1e6 "
                     "--kernels native --json --run run " +
                         more,
                     folder);
}

bool lacks_models(const Outcome& outcome) {
  return outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos;
}

TEST(NonFiniteCliTest, StopsTheRunAndSaysWhere) {
  const TemporaryFolder folder;
  const Outcome outcome = diverge("", folder);
  if (lacks_models(outcome)) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("is not finite in iteration "));
  EXPECT_THAT(outcome.err, HasSubstr("sluice: rank "));
  EXPECT_THAT(outcome.err, HasSubstr("lower --lr"));
}

TEST(NonFiniteCliTest, WithAWarningTheMetricsKeepTheValue) {
  const TemporaryFolder folder;
  const Outcome outcome = diverge("--on-nonfinite warn", folder);
  if (lacks_models(outcome)) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the run continues"));
  EXPECT_EQ(json::parse(outcome.out).at("loss"), "NaN");
  EXPECT_THAT(folder.read("run/metrics.jsonl"), HasSubstr("\"loss\":\"NaN\""));
}

// The model is saved although the trace cannot be written.
TEST(SaveCliTest, TheModelIsSavedBeforeTheRest) {
  const TemporaryFolder folder;
  const Outcome outcome = run_command(
      "'" SLUICE_BINARY
      "' train --model mlp --data synthetic --workers 2 --iterations 3 --kernels native "
      "--run run --save saved --trace /dev/full",
      folder);
  if (lacks_models(outcome)) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot be written: No space left on device"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "saved" / "model.safetensors"));
  EXPECT_NE(folder.read("run/summary.json"), "");
}

}  // namespace
}  // namespace sluice
