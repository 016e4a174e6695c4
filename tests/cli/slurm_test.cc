// Runs the program on a Slurm cluster on this machine (scripts/slurm-cluster), which needs root;
// skipped if something is missing.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/lab.h"
#include "support/mpirun.h"
#include "support/short_training.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kCluster = SLUICE_SOURCE_DIR "/scripts/slurm-cluster";

// Until Slurm has no job left.
constexpr const char* kAwaitEnd = "while squeue --noheader | grep -q .; do sleep 0.1; done\n";

std::string srun() { return uses_open_mpi() ? "srun --mpi=pmix" : "srun --mpi=pmi2"; }

class SlurmMpiTest : public MpiJobTest {
 protected:
  void SetUp() override {
    MpiJobTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    if (const auto lacks = lab::missing(); !lacks.empty()) {
      SKIP_FOR_LACK(fmt::format("this machine lacks {}", fmt::join(lacks, ", and ")));
    }
    if (run_command("for tool in munged slurmctld slurmd srun; do command -v $tool; done", folder_)
            .code != 0) {
      SKIP_FOR_LACK("this machine lacks Slurm; scripts/packages installs it");
    }
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
        {"name":"a","params":1000,"forward_us":500,"backward_us":500},
        {"name":"b","params":30,"forward_us":500,"backward_us":500}]})");
  }

  // Runs a script on the head of three nodes.
  Outcome on_cluster(const std::string& script) const {
    folder_.write("head.sh", script);
    return run_command(
        fmt::format("ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" timeout 200 '{}' --nodes 3 bash "
                    "head.sh",
                    kCluster),
        folder_);
  }

  json summary_of(const std::string& run) const {
    return json::parse(folder_.read(run + "/summary.json"));
  }

  // A training that goes on for longer than any test, with a model to save if there are models.
  static std::string endless() {
    const std::string task = kHasModels
                                 ? "--model mlp --data synthetic --kernels native --save saved"
                                 : "--model replay:net.json";
    return "'" SLUICE_BINARY "' train --iterations 1000000 --run run --trace " + task;
  }

  // In a script: until the training has taken a step.
  static std::string await_step() { return "until [ -s run/metrics.jsonl ]; do sleep 0.1; done\n"; }

  // The record is as complete as that of any run.
  void expect_stopped() const {
    const json summary = summary_of("run");
    const auto iterations = summary.at("iterations").get<std::int64_t>();
    EXPECT_EQ(summary.at("stopped"),
              fmt::format("SIGTERM after {} of 1000000 iterations", iterations));
    EXPECT_EQ(summary.at("workers"), 3);
    EXPECT_EQ(std::ranges::count(folder_.read("run/metrics.jsonl"), '\n'), iterations);
    EXPECT_FALSE(json::parse(folder_.read("run/trace.json")).empty());
    EXPECT_EQ(std::filesystem::exists(folder_.path() / "saved" / "model.safetensors"), kHasModels);
  }
};

TEST_F(SlurmMpiTest, SrunTrains) {
  const Outcome outcome =
      on_cluster(srun() + " --ntasks 3 '" SLUICE_BINARY
                          "' train --model replay:net.json --iterations 20 --run run --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("3 processes on n1, n2, n3"));
  EXPECT_EQ(json::parse(outcome.out).at("workers"), 3);
  EXPECT_EQ(summary_of("run").at("iterations"), 20);
}

TEST_F(SlurmMpiTest, SrunRunsAScript) {
  const auto package = std::filesystem::path(SLUICE_BINARY).parent_path() / "python";
  if (!std::filesystem::exists(package)) {
    SKIP_AS_INAPPLICABLE("this build has no Python package");
  }
  const Outcome outcome = on_cluster(fmt::format(
      "for python in python3 /usr/bin/python3; do $python -c 'import torch' 2>/dev/null && break; "
      "done\nPYTHONPATH='{}' {} --ntasks 3 $python '{}'",
      package.string(), srun(), SLUICE_SOURCE_DIR "/python/tests/collectives.py"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("passed"));
}

// The two ways to start processes in a batch script.
TEST_F(SlurmMpiTest, SbatchTrainsWithSrunAndMpirun) {
  folder_.write("job.sh",
                "#!/bin/sh\n" + srun() +
                    " '" SLUICE_BINARY
                    "' train --model replay:net.json --iterations 20 --run by-srun && "
                    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " SLUICE_MPIRUN
                    " -np 3 '" SLUICE_BINARY
                    "' train --model replay:net.json --iterations 20 --run by-mpirun\n"
                    "echo it ended with $?\n");
  const Outcome outcome = on_cluster(
      std::string("sbatch --nodes 3 --ntasks-per-node 1 --output job.txt job.sh\n") + kAwaitEnd);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string job = folder_.read("job.txt");
  ASSERT_THAT(job, HasSubstr("it ended with 0"));
  for (const std::string run : {"by-srun", "by-mpirun"}) {
    SCOPED_TRACE(run);
    EXPECT_EQ(summary_of(run).at("workers"), 3);
    EXPECT_EQ(summary_of(run).at("iterations"), 20);
    EXPECT_EQ(summary_of(run).at("run").at("hosts"), json({"n1", "n2", "n3"}));
  }
}

TEST_F(SlurmMpiTest, ScancelEndsSrunWithItsRecord) {
  const Outcome outcome = on_cluster(srun() + " --ntasks 3 --job-name endless " + endless() +
                                     " &\n" + await_step() + "scancel --name endless\nwait $!");
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  expect_stopped();
}

TEST_F(SlurmMpiTest, ScancelEndsABatchJobWithItsRecord) {
  folder_.write("job.sh", "#!/bin/sh\n" + srun() + " " + endless() + "\n");
  const Outcome outcome = on_cluster(
      "job=$(sbatch --parsable --nodes 3 --ntasks-per-node 1 --output job.txt job.sh)\n" +
      await_step() + "scancel $job\n" + kAwaitEnd);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_stopped();
}

// Each process is a step of the allocation. One that is killed comes back as another step.
TEST_F(SlurmMpiTest, LaunchGoesOnWithoutAWorkerThatIsLost) {
  folder_.write(
      "kill.sh",
      "until [ \"$(wc -l 2>/dev/null <run/metrics.jsonl)\" -gt 100 ]; do sleep 0.1; done\n"
      "for process in /proc/[0-9]*; do\n"
      "  grep --quiet --null-data '^SLUICE_RANK=2$' $process/environ 2>/dev/null || continue\n"
      "  [ \"$(cat $process/comm)\" = sluice ] && kill -9 ${process#/proc/}\n"
      "done\n");
  const Outcome outcome = on_cluster(
      "sh kill.sh &\n"
      "salloc --quiet --nodes 3 --ntasks-per-node 1 '" SLUICE_BINARY
      "' launch -n 3 --transport tcp --max-restarts 1 -- '" SLUICE_BINARY
      "' train --preset gosgd --model replay:net.json --iterations 6000 --run run --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 2 on n3 was lost"));
  EXPECT_THAT(outcome.err, HasSubstr("rank 2 is back"));
  const json summary = summary_of("run");
  EXPECT_EQ(summary.at("run").at("hosts"), json({"n1", "n2", "n3"}));
  EXPECT_EQ(summary.at("joined_ranks"), json::array({2}));
}

TEST_F(SlurmMpiTest, TheDoctorKnowsSlurmsPmi) {
  const Outcome outcome = on_cluster(
      "for type in none pmi2 pmix; do\n"
      "srun --mpi=$type --ntasks 3 --output $type.%t '" SLUICE_BINARY
      "' doctor --json || exit\ndone");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = [&](const std::string& type) {
    return json::parse(folder_.read(type + ".2"));
  };
  EXPECT_EQ(report("none").at("process manager"),
            "Slurm's srun without PMI (--mpi=none): rank 2 of 3");
  EXPECT_EQ(report("pmi2").at("process manager"), "Slurm's srun --mpi=pmi2: rank 2 of 3");
  EXPECT_EQ(report("pmix").at("process manager"), "Slurm's srun --mpi=pmix: rank 2 of 3");
  const auto fits = [&](const std::string& type) {
    return !report(type).at("missing").contains("process manager");
  };
  EXPECT_FALSE(fits("none"));
  EXPECT_EQ(fits("pmi2"), !uses_open_mpi());
  EXPECT_EQ(fits("pmix"), uses_open_mpi());
}

// The cluster's folder is in that of the test, and the process that it ran carries its name.
TEST_F(SlurmMpiTest, NothingIsLeftOfAClusterThatIsInterrupted) {
  const std::string marker = fmt::format("98764.{}", getpid());
  std::filesystem::create_directory(folder_.path() / "temporary");
  folder_.write("head.sh",
                "srun --ntasks 3 sh -c 'touch up.$SLURM_PROCID; exec sleep " + marker + "'");
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    SCOPED_TRACE(signal);
    const Outcome outcome = run_command(
        fmt::format(
            "rm -f up.*; TMPDIR=$PWD/temporary env --default-signal '{}' --nodes 3 bash "
            "head.sh & cluster=$!\n"
            "until [ -e up.0 ] && [ -e up.1 ] && [ -e up.2 ]; do kill -0 $cluster || break; sleep "
            "0.1; done\n"
            "kill -{} $cluster; wait $cluster; echo it ended with $?; ls temporary\n"
            "cat /proc/[0-9]*/cmdline 2>/dev/null | grep --text --count '[9]{}'",
            kCluster, signal, marker.substr(1)),
        folder_);
    EXPECT_EQ(outcome.out, fmt::format("it ended with {}\n0\n", code)) << outcome.err;
  }
}

}  // namespace
}  // namespace sluice
