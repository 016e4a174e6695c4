#include "session/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "formats/profile.h"
#include "nodes/presets.h"
#include "report/progress.h"
#include "session/thread_group.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionThreadsTest : public ::testing::Test {
 protected:
  SessionThreadsTest() {
    const Profile net{.name = "net",
                      .batch = 8,
                      .device = "",
                      .source = "",
                      .layers = {{.name = "a", .params = 300, .forward = from_us(10)},
                                 {.name = "b", .params = 40, .backward = from_us(20)}}};
    const std::string path = folder_.path() / "net.json";
    EXPECT_TRUE(write_profile(path, net));
    spec_.strategy = {.preset = "p3", .strategy = find_preset("p3")->strategy, .chosen = {}};
    spec_.hosts.workers = 2;
    spec_.work = ProfileSpec{.path = path};
    spec_.length.iterations = 6;
    spec_.record.folder = folder_.path() / "run";
    spec_.record.trace = "auto";
    spec_.record.config = "seed = 1\n";
  }

  Result<TrainingSession> prepare() { return TrainingSession::prepare(*group_, spec_, {}, {}); }
  std::string complaint() {
    const auto session = prepare();
    return session ? "" : session.error().message();
  }

  TemporaryFolder folder_;
  std::unique_ptr<ProcessGroup> group_ = make_thread_group();
  TrainSpec spec_;
};

TEST_F(SessionThreadsTest, ASpecBecomesARecord) {
  auto prepared = prepare();
  ASSERT_TRUE(prepared) << prepared.error().message();
  TrainingSession session = *std::move(prepared);
  const TrainReport report = session.run();
  ASSERT_FALSE(report.fault) << report.fault->message();
  EXPECT_FALSE(report.stopped);
  EXPECT_EQ(report.folder, folder_.path() / "run");
  EXPECT_EQ(report.summary["preset"], "p3");
  EXPECT_EQ(report.summary["model"], "replay-net");
  EXPECT_EQ(report.summary["workers"], 2);
  EXPECT_EQ(report.summary["iterations"], 6);
  EXPECT_EQ(report.summary["parameters"], 340);
  EXPECT_EQ(report.summary["by_worker"].size(), 2U);
  EXPECT_FALSE(report.summary["network"].contains("gbps"));
  EXPECT_EQ(folder_.read("run/config.toml"), "seed = 1\n");
  auto written = nlohmann::ordered_json::parse(folder_.read("run/summary.json"));
  EXPECT_EQ(written["run"]["hosts"].size(), 1U);
  written.erase("run");
  EXPECT_EQ(written, report.summary);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "run/trace.json"));
  const std::string metrics = folder_.read("run/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(metrics, '\n'), 6);
}

TEST_F(SessionThreadsTest, WhatCannotBeIsFoundBeforeAFolderIsMade) {
  spec_.hosts.workers_per_host = 4;
  EXPECT_THAT(complaint(), StartsWith("workers-per-host: 2 workers do not fill hosts of 4"));
  spec_.hosts.workers_per_host = 1;
  spec_.strategy.strategy = find_preset("wfbp")->strategy;
  spec_.strategy.strategy.collective = Collective::kNative;
  EXPECT_THAT(complaint(), HasSubstr("there is only one process"));
  spec_.strategy.strategy.partition = Partition::kKvstore;
  EXPECT_THAT(complaint(), HasSubstr("kvstore"));
  spec_.strategy.strategy = find_preset("p3")->strategy;
  spec_.work = ProfileSpec{.path = folder_.path() / "absent.json"};
  EXPECT_THAT(complaint(), HasSubstr("absent.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
}

TEST_F(SessionThreadsTest, ReportsToTheLogOfItsCaller) {
  spec_.strategy.strategy = find_preset("mg-wfbp")->strategy;
  spec_.length.iterations = 1;
  std::vector<std::string> warnings;
  std::ostringstream shown;
  Progress progress(shown, Progress::Style::kPlain);
  auto prepared = TrainingSession::prepare(
      *group_, spec_, {},
      {.warn = [&](const std::string& text) { warnings.push_back(text); }, .progress = &progress});
  ASSERT_TRUE(prepared) << prepared.error().message();
  TrainingSession session = *std::move(prepared);
  session.run();
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("nothing was merged")));
  EXPECT_THAT(shown.str(), HasSubstr("step 1/1"));
}

TEST_F(SessionThreadsTest, WhoGaveNoSpecHearsWhy) {
  const auto session = TrainingSession::prepare(*group_, Error("--slice: is missing"), {}, {});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message(), "--slice: is missing");
}

TEST_F(SessionThreadsTest, ARunWithoutARecordOfItsOwnIsStillTraining) {
  const auto work =
      make_workload(std::get<ProfileSpec>(spec_.work), spec_.length, {.workers = 2}, {});
  ASSERT_TRUE(work);
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(work->factory(0));
  learners.push_back(work->factory(1));
  Job job;
  job.layers = learners[0]->layers();
  job.topology = Topology(2, 1, 0);
  job.strategy = spec_.strategy.strategy;
  const UpdateRule rule;
  const Clock clock;
  const Trained trained = run_training(job, {.group = *group_,
                                             .learners = learners,
                                             .rule = rule,
                                             .extent = work->extent,
                                             .clock = clock});
  EXPECT_EQ(trained.counters.updates,
            6 * static_cast<std::int64_t>(trained.assembly.chunks->size()));
}

}  // namespace
}  // namespace sluice
