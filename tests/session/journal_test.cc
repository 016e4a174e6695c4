#include "session/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    auto created = RunFolder::create(folder_.path() / "run");
    EXPECT_TRUE(created);
    run_.emplace(*std::move(created));
    log_.info = [this](const std::string& text) { said_.push_back(text); };
    log_.warn = [this](const std::string& text) { warned_.push_back(text); };
    journal_.emplace(
        Extent{.workers = 2, .batch = 8, .iterations = 6, .per_epoch = 3, .samples_per_epoch = 48},
        RunClock{clock_}, [this] { return result_; }, *run_, log_, [this] { return lost_; });
  }

  void step(std::size_t rank, Iteration iteration, std::optional<double> loss, int at = 0) {
    journal_->on_step({.rank = rank, .iteration = iteration, .loss = loss, .at = Time(at)});
  }
  std::vector<json> rows() const {
    std::vector<json> rows;
    std::istringstream lines(folder_.read("run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      rows.push_back(json::parse(line));
    }
    return rows;
  }

  TemporaryFolder folder_;
  std::optional<RunFolder> run_;
  Clock clock_;
  std::optional<Evaluation> result_;
  std::size_t lost_ = 0;
  Log log_;
  std::vector<std::string> said_;
  std::vector<std::string> warned_;
  std::optional<Journal> journal_;
};

// Worker 1 goes on two iterations ahead.
TEST_F(JournalTest, AnIterationIsDoneWhenThoseHaveDoneItWhoDoIt) {
  journal_.emplace(
      Extent{.workers = 2,
             .batch = 8,
             .iterations = 6,
             .first = 1,
             .starts = {1, 3},
             .per_epoch = 3,
             .samples_per_epoch = 48},
      RunClock{clock_}, [this] { return result_; }, *run_, log_);
  step(1, 3, 5.0);
  EXPECT_EQ(journal_->done(), 1);
  step(0, 1, 1.0);
  step(0, 2, 1.0);
  EXPECT_EQ(journal_->done(), 3);
  step(0, 3, 1.0);
  EXPECT_EQ(journal_->done(), 4);
  EXPECT_EQ(journal_->loss(), 3.0);
}

// Worker 0 had done four iterations when it began to lead, worker 1 two.
TEST_F(JournalTest, OneThatTakesOverGoesOnWhereTheWorkersAre) {
  journal_->take_over({4, 2}, 6);
  EXPECT_EQ(journal_->done(), 2);
  EXPECT_EQ(journal_->mean_done(), 3);
  step(0, 4, 5.0);
  EXPECT_EQ(journal_->done(), 2);
  step(1, 2, 1.0);
  step(1, 3, 1.0);
  EXPECT_EQ(journal_->done(), 4);
  step(1, 4, 1.0);
  EXPECT_EQ(journal_->done(), 5);
  EXPECT_EQ(journal_->loss(), 3.0);
  EXPECT_EQ(rows().back().at("samples"), 80) << "of the iterations before, too";
  EXPECT_EQ(journal_->mean_done(), 5);
}

TEST_F(JournalTest, AnIterationIsDoneWhenAllWorkersHaveDoneIt) {
  step(0, 0, 1.0);
  step(0, 1, 5.0);
  EXPECT_EQ(journal_->done(), 0);
  EXPECT_EQ(journal_->mean_done(), 1);
  EXPECT_FALSE(journal_->loss());
  step(1, 0, 2.0);
  EXPECT_EQ(journal_->done(), 1);
  EXPECT_EQ(journal_->loss(), 1.5);
  ASSERT_EQ(rows().size(), 1U);
  const json row = rows().front();
  EXPECT_EQ(row.at("step"), 1);
  EXPECT_EQ(row.at("epoch"), 1);
  EXPECT_EQ(row.at("loss"), 1.5);
  EXPECT_EQ(row.at("samples"), 16);
}

// It was ahead of the other one, which goes on.
TEST_F(JournalTest, IterationsAreDoneWithoutALostWorker) {
  for (Iteration iteration = 0; iteration < 3; ++iteration) {
    step(1, iteration, 3.0);
  }
  step(0, 0, 1.0);
  EXPECT_EQ(journal_->done(), 1);
  lost_ = 1;
  for (Iteration iteration = 1; iteration < 6; ++iteration) {
    step(0, iteration, 1.0);
  }
  EXPECT_EQ(journal_->done(), 6);
  EXPECT_EQ(journal_->loss(), 1.0);
  ASSERT_EQ(rows().size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows()[i].at("step"), i + 1);
  }
}

// The others had done what they waited for it with.
TEST_F(JournalTest, ALossCompletesWhatOnlyTheLostOneHadNotDone) {
  step(0, 0, 1.0);
  step(0, 1, 1.0);
  lost_ = 1;
  step(0, 2, 1.0);
  EXPECT_EQ(journal_->done(), 3);
}

// Nobody waits for what it missed, and everybody for what it does from then on.
TEST_F(JournalTest, AWorkerThatIsBackCountsFromWhereItBegins) {
  step(1, 0, 1.0);
  lost_ = 1;
  step(0, 0, 1.0);
  step(0, 1, 1.0);
  lost_ = 0;
  journal_->on_join(1, 4);
  step(0, 2, 1.0);
  step(0, 3, 1.0);
  EXPECT_EQ(journal_->done(), 4);
  step(0, 4, 1.0);
  EXPECT_EQ(journal_->done(), 4);
  step(1, 4, 3.0);
  EXPECT_EQ(journal_->done(), 5);
  EXPECT_EQ(journal_->loss(), 2.0);
}

TEST_F(JournalTest, EpochsAndSamplesCountOn) {
  for (Iteration iteration = 0; iteration < 4; ++iteration) {
    step(0, iteration, 1.0);
    step(1, iteration, 1.0);
  }
  EXPECT_EQ(rows().at(2).at("epoch"), 1);
  EXPECT_EQ(rows().at(3).at("epoch"), 2);
  EXPECT_EQ(rows().at(3).at("samples"), 64);
}

TEST_F(JournalTest, WithoutALossThereIsNone) {
  step(0, 0, std::nullopt);
  step(1, 0, std::nullopt);
  EXPECT_FALSE(journal_->loss());
  EXPECT_FALSE(rows().at(0).contains("loss"));
}

TEST_F(JournalTest, ALossThatJsonCannotHoldIsStillARow) {
  step(0, 0, std::numeric_limits<double>::quiet_NaN());
  step(1, 0, 1.0);
  EXPECT_FALSE(rows().at(0).at("loss").is_number());
}

// The slower worker ends an iteration. The first half is not steady.
TEST_F(JournalTest, TheSteadyIterationIsThatOfTheSecondHalf) {
  EXPECT_EQ(journal_->steady_iteration(), Duration(0));
  const std::vector<int> ends{1000, 1100, 1140, 1200};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    step(0, static_cast<Iteration>(i), {}, ends[i]);
    step(1, static_cast<Iteration>(i), {}, ends[i] - 10);
  }
  EXPECT_EQ(journal_->steady_iteration(), Duration(50));
}

TEST_F(JournalTest, AnEvaluationIsARowAndALine) {
  result_ = Evaluation{.loss = 0.5, .accuracy = 0.875};
  journal_->on_boundary(3, EvaluatedModel::kReplica);
  ASSERT_TRUE(journal_->evaluation());
  EXPECT_EQ(journal_->evaluation()->accuracy, 0.875);
  ASSERT_EQ(rows().size(), 1U);
  EXPECT_EQ(rows()[0].at("step"), 3);
  EXPECT_EQ(rows()[0].at("test_loss"), 0.5);
  EXPECT_EQ(rows()[0].at("test_accuracy"), 0.875);
  EXPECT_EQ(rows()[0].at("evaluated"), "replica");
  EXPECT_THAT(said_, ElementsAre("after 3 steps: test accuracy 87.50 %"));
}

TEST_F(JournalTest, WithoutClassesAnEvaluationIsALoss) {
  result_ = Evaluation{.loss = 0.5};
  journal_->on_boundary(3, EvaluatedModel::kReplica);
  EXPECT_EQ(rows()[0].at("test_loss"), 0.5);
  EXPECT_FALSE(rows()[0].contains("test_accuracy"));
  EXPECT_THAT(said_, ElementsAre("after 3 steps: test loss 0.5"));
}

TEST_F(JournalTest, AnEvaluationSaysWhoseModelItWas) {
  result_ = Evaluation{.loss = 0.5, .accuracy = 0.875};
  journal_->on_boundary(3, EvaluatedModel::kMean);
  journal_->on_boundary(6, EvaluatedModel::kServers);
  EXPECT_EQ(rows().at(0).at("evaluated"), "mean of the workers");
  EXPECT_EQ(rows().at(1).at("evaluated"), "servers");
  EXPECT_EQ(journal_->evaluations().at(0).model, EvaluatedModel::kMean);
}

TEST_F(JournalTest, WhoCannotEvaluateLeavesNoRow) {
  journal_->on_boundary(3, EvaluatedModel::kReplica);
  EXPECT_FALSE(journal_->evaluation());
  EXPECT_EQ(folder_.read("run/metrics.jsonl"), "");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(JournalTest, ARunThatStoppedHasNoEvaluation) {
  result_ = Evaluation{.loss = 0.5, .accuracy = 0.875};
  journal_->on_boundary(3, EvaluatedModel::kReplica);
  journal_->on_stop("SIGINT after 4 of 6 iterations");
  EXPECT_FALSE(journal_->evaluation());
  EXPECT_THAT(warned_, ElementsAre("stopped by SIGINT after 4 of 6 iterations"));
}

TEST_F(JournalTest, KeepsTheFirstFailureToWrite) {
  step(0, 0, 1.0);
  EXPECT_FALSE(journal_->error());
  std::filesystem::remove_all(folder_.path() / "run");
  step(1, 0, 1.0);
  ASSERT_TRUE(journal_->error());
  EXPECT_THAT(journal_->error()->message(), HasSubstr("metrics.jsonl: cannot be written"));
  EXPECT_EQ(journal_->done(), 1) << "training goes on";
}

// A program's own loop has no epochs, and need not say how many samples it takes.
TEST_F(JournalTest, AnOpenRunHasStepsAndLossesOnly) {
  for (const std::int64_t batch : {0, 8}) {
    TemporaryFolder folder;
    auto created = RunFolder::create(folder.path() / "run");
    ASSERT_TRUE(created);
    RunFolder run = *std::move(created);
    Journal journal(
        Extent::open(2, batch), RunClock{clock_}, [] { return std::nullopt; }, run, log_);
    journal.on_step({.rank = 1, .iteration = 0, .loss = 3.0, .at = Time(5)});
    journal.on_step({.rank = 0, .iteration = 0, .loss = 1.0, .at = Time(2)});
    EXPECT_EQ(journal.ended(), Time(5));
    const json row = json::parse(folder.read("run/metrics.jsonl"));
    EXPECT_EQ(row.at("loss"), 2.0);
    EXPECT_FALSE(row.contains("epoch"));
    EXPECT_EQ(row.contains("samples"), batch > 0);
    EXPECT_EQ(row.value("samples", 16), 16);
  }
}

}  // namespace
}  // namespace sluice
