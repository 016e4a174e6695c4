// Checkpoints of real MPI jobs on this machine, with checkpoint_program.cc and the program itself.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nodes/presets.h"
#include "support/lines.h"
#include "support/mpirun.h"
#include "support/resumed_runs.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CheckpointsMpiTest : public MpiJobTest {
 protected:
  // All these presets in one job.
  void expect_going_on(int processes, int servers, const std::vector<std::string>& presets) {
    std::string command =
        fmt::format("'" SLUICE_CHECKPOINT_PROGRAM "' '{}' {}", folder_.path().string(), servers);
    std::vector<std::string> expected;
    for (const std::string& preset : presets) {
      command += " " + preset;
      expected.push_back(preset + " goes on");
    }
    const Outcome outcome = mpirun(processes, command, folder_);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(lines_of(outcome.out), expected) << outcome.err;
  }
};

TEST_F(CheckpointsMpiTest, AllSynchronousPresetsGoOnWithTheSameBits) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (testing::has_exact_checkpoints(preset.strategy)) {
      names.emplace_back(preset.name);
    }
  }
  expect_going_on(3, 0, names);
}

TEST_F(CheckpointsMpiTest, ServersOnProcessesOfTheirOwnGoOnToo) {
  expect_going_on(3, 1, {"p3", "kvstore", "bsp+dgc"});
}

// p3 ends with the bits of a run on threads, which was never stopped.
TEST_F(CheckpointsMpiTest, ASignalWritesOneAndTheNextRunGoesOn) {
  folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":30000,"forward_us":500,"backward_us":500},
    {"name":"b","params":300,"forward_us":500,"backward_us":500}]})");
  const std::string train =
      "'" SLUICE_BINARY "' train --model replay:net.json --slice 20000 --json";
  const std::string stop =
      "sh -c '" SLUICE_BINARY
      " train --model replay:net.json --slice 20000 --json --checkpoint kept --run first"
      " --iterations 1000000 & pid=$!; trap \"\" TERM; "
      "if [ " +
      std::string(kRankInScript) +
      " = 1 ]; then "
      "for i in $(seq 1000); do [ -s first/metrics.jsonl ] && break; sleep 0.1; done; "
      "kill -TERM $pid; fi; wait $pid'";
  const Outcome stopped = mpirun(2, stop, folder_);
  EXPECT_THAT(stopped.err, HasSubstr("stopped by SIGTERM after ")) << stopped.out;
  EXPECT_THAT(stopped.err, HasSubstr("checkpoint in kept/iteration-"));
  const json summary = json::parse(folder_.read("first/summary.json"));
  const auto first = summary.at("iterations").get<std::int64_t>();
  const std::int64_t last = first + 5;
  const Outcome resumed = mpirun(
      2,
      fmt::format("{} --checkpoint kept --resume auto --run second --iterations {}", train, last),
      folder_);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(fmt::format("after {} iterations", first)));
  const Outcome whole =
      run_command(fmt::format("{} --workers 2 --run whole --iterations {}", train, last), folder_);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const json end = json::parse(resumed.out);
  EXPECT_EQ(end.at("iterations"), last);
  EXPECT_EQ(end.at("resumed").at("iteration"), first);
  EXPECT_EQ(end.at("parameters_hash"), json::parse(whole.out).at("parameters_hash"));
}

// Every process has its own worker somewhere else when a checkpoint is written.
TEST_F(CheckpointsMpiTest, WorkersThatDoNotWaitGoOnFromWhereTheyAre) {
  folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":30000,"forward_us":300,"backward_us":300},
    {"name":"b","params":300,"forward_us":300,"backward_us":300}]})");
  for (const std::string preset : {"asp", "easgd", "gosgd", "ad-psgd", "ssp+dgc"}) {
    const std::string train = fmt::format(
        "'" SLUICE_BINARY
        "' train --model replay:net.json --json --preset {0} --checkpoint {0} --resume auto "
        "--checkpoint-every 30it --iterations ",
        preset);
    const Outcome first = mpirun(3, train + "100", folder_);
    ASSERT_EQ(first.code, 0) << preset << first.err;
    EXPECT_GE(json::parse(first.out).at("checkpoints").at("written"), 3) << preset;
    EXPECT_EQ(json::parse(first.out).at("checkpoints").at("failed"), 0) << preset;
    const Outcome second = mpirun(3, train + "200", folder_);
    ASSERT_EQ(second.code, 0) << preset << second.err;
    EXPECT_EQ(json::parse(second.out).at("resumed").at("iteration"), 100) << preset;
    EXPECT_EQ(json::parse(second.out).at("iterations"), 200) << preset;
  }
}

// Threads, then processes, then a process for servers alone. All workers of a replay have the same
// gradients, and the mean of 2 or 4 of them is exact.
TEST_F(CheckpointsMpiTest, OtherWorkersGoOnAsProcesses) {
  folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":30000,"forward_us":500,"backward_us":500},
    {"name":"b","params":300,"forward_us":500,"backward_us":500}]})");
  for (const bool has_servers : {true, false}) {
    const std::string train = fmt::format(
        "'" SLUICE_BINARY "' train --model replay:net.json --json --optimizer adam --preset {}",
        has_servers ? "p3" : "wfbp");
    const std::string keeping =
        has_servers ? "--checkpoint servers --resume auto " : "--checkpoint none --resume auto ";
    const Outcome first = run_command(train + " --workers 4 --iterations 5 " + keeping, folder_);
    ASSERT_EQ(first.code, 0) << first.err;
    const Outcome second = mpirun(2, train + " --iterations 9 " + keeping, folder_);
    ASSERT_EQ(second.code, 0) << second.err;
    EXPECT_EQ(json::parse(second.out).at("resumed").at("former_workers"), 4);
    const Outcome third =
        has_servers ? mpirun(3, train + " --iterations 12 --servers 1 " + keeping, folder_)
                    : mpirun(4, train + " --iterations 12 " + keeping, folder_);
    ASSERT_EQ(third.code, 0) << third.err;
    EXPECT_THAT(third.err, HasSubstr("checkpoint of 2 workers"));
    const Outcome whole = run_command(train + " --workers 2 --iterations 12", folder_);
    ASSERT_EQ(whole.code, 0) << whole.err;
    EXPECT_EQ(json::parse(third.out).at("parameters_hash"),
              json::parse(whole.out).at("parameters_hash"));
  }
}

}  // namespace
}  // namespace sluice
