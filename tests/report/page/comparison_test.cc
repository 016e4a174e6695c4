#include "report/page/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

TEST(Comparison, InterpolatesACurve) {
  const Curve curve{{1, 10}, {3, 20}, {4, 0}};
  EXPECT_THAT(value_at(curve, 1), Optional(10.0));
  EXPECT_THAT(value_at(curve, 2), Optional(15.0));
  EXPECT_THAT(value_at(curve, 3.5), Optional(10.0));
  EXPECT_THAT(value_at(curve, 4), Optional(0.0));
  EXPECT_FALSE(value_at(curve, 0.9));
  EXPECT_FALSE(value_at(curve, 4.1));
  EXPECT_FALSE(value_at({}, 1));
}

RC_GTEST_PROP(Comparison, AValueLiesBetweenItsNeighbours, ()) {
  auto xs = *rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 1000)));
  std::ranges::sort(xs);
  Curve curve;
  for (const int x : xs) {
    curve.emplace_back(x, *rc::gen::inRange(-100, 100));
  }
  const double x = *rc::gen::inRange(0, 2000) / 2.0;
  const auto y = value_at(curve, x);
  RC_ASSERT(y.has_value() == (x >= xs.front() && x <= xs.back()));
  if (y) {
    const auto after = std::ranges::find_if(curve, [x](const auto& p) { return p.first >= x; });
    const auto before = after->first == x ? after : std::prev(after);
    RC_ASSERT(*y >= std::min(before->second, after->second) - 1e-9);
    RC_ASSERT(*y <= std::max(before->second, after->second) + 1e-9);
  }
}

// A run whose step i ends at i * seconds, with a loss of 4 / i; evaluated at each second step.
RunData steady_run(double seconds, int steps, double accuracy) {
  RunData run;
  run.summary = {{"iteration_us", seconds * 1e6},
                 {"iterations", steps},
                 {"train_s", seconds * steps},
                 {"mechanism", {{"bytes", steps * 2e6}}},
                 {"egress_utilisation", 0.5}};
  for (int i = 1; i <= steps; ++i) {
    run.steps.push_back(
        {.step = 1.0 * i, .samples = 8.0 * i, .seconds = i * seconds, .loss = 4.0 / i});
    if (i % 2 == 0) {
      run.evaluations.push_back({.step = 1.0 * i,
                                 .epoch = i / 2.0,
                                 .seconds = i * seconds,
                                 .loss = 1,
                                 .accuracy = accuracy * i});
    }
  }
  return run;
}

// A diverged run stopped early, with a loss that is no number.
RunData diverged_run() {
  RunData run = steady_run(1, 1, 0);
  run.summary["diverged"] = "rank 0: the loss is not finite in iteration 2";
  run.steps.push_back({.step = 2, .samples = 16, .seconds = 2, .loss = std::nan("")});
  return run;
}

TEST(Comparison, LeavesOutRunsThatDiverged) {
  const std::vector<SeededRuns> all{{"some", {diverged_run(), steady_run(1, 4, 0.1)}},
                                    {"all", {diverged_run(), diverged_run()}},
                                    {"none", {steady_run(1, 4, 0.1), steady_run(1, 4, 0.1)}}};
  const Comparison comparison = compare(all);
  EXPECT_EQ(comparison.samples, 32);
  EXPECT_DOUBLE_EQ(comparison.rows[0].loss_at_samples->mean, 1);
  EXPECT_EQ(comparison.rows[0].diverged, 1U);
  EXPECT_FALSE(comparison.rows[1].loss_at_samples);
  const PageTable table = table_of(comparison, true);
  EXPECT_EQ(table.titles[1], "diverged");
  EXPECT_EQ(table.rows[0][1], "1 of 2");
  EXPECT_EQ(table.rows[1][1], "2 of 2");
  EXPECT_EQ(table.rows[2][1], "");
  EXPECT_THAT(to_html(seeds_page(all, "")), HasSubstr("all diverged in 2 of 2 runs"));
}

TEST(Comparison, ShowsThatAllRunsDiverged) {
  const std::vector<SeededRuns> all{{"all", {diverged_run()}}};
  EXPECT_EQ(compare(all).samples, 0);
  EXPECT_THAT(to_html(seeds_page(all, "")), HasSubstr("all diverged in 1 of 1 runs"));
}

// The fast one ends after 4 s, when the slow one has done 2 of its 4 steps.
TEST(Comparison, IsAtEqualSamplesAndAtEqualSeconds) {
  const Comparison comparison = compare({{"fast", {steady_run(1, 4, 0.1), steady_run(1, 4, 0.2)}},
                                         {"slow", {steady_run(2, 4, 0.1)}}});
  EXPECT_EQ(comparison.samples, 32);
  EXPECT_EQ(comparison.seconds, 4);
  ASSERT_EQ(comparison.rows.size(), 2U);
  const ComparedFigures& fast = comparison.rows[0];
  const ComparedFigures& slow = comparison.rows[1];
  EXPECT_DOUBLE_EQ(fast.iteration_ms->mean, 1000);
  EXPECT_DOUBLE_EQ(fast.megabytes->mean, 2);
  EXPECT_DOUBLE_EQ(fast.link_percent->mean, 50);
  EXPECT_DOUBLE_EQ(fast.loss_at_samples->mean, 1);
  EXPECT_DOUBLE_EQ(slow.loss_at_samples->mean, 1);
  EXPECT_DOUBLE_EQ(fast.loss_at_seconds->mean, 1);
  EXPECT_DOUBLE_EQ(slow.loss_at_seconds->mean, 2);
  EXPECT_DOUBLE_EQ(fast.accuracy_at_samples->mean, 60);
  EXPECT_NEAR(fast.accuracy_at_samples->deviation, 28.28, 0.01);
  EXPECT_DOUBLE_EQ(slow.accuracy_at_seconds->mean, 20);
  EXPECT_EQ(slow.accuracy_at_seconds->count, 1U);
}

TEST(Comparison, LeavesOutWhatNotAllHave) {
  RunData replay = steady_run(1, 2, 0.1);
  replay.steps[1].loss.reset();
  replay.evaluations.clear();
  const Comparison comparison = compare({{"a", {steady_run(1, 4, 0.1), replay}}});
  EXPECT_EQ(comparison.samples, 16);
  EXPECT_FALSE(comparison.rows[0].loss_at_samples);
  EXPECT_FALSE(comparison.rows[0].accuracy_at_seconds);
  EXPECT_TRUE(comparison.rows[0].iteration_ms);
  EXPECT_THAT(table_of(comparison, true).titles,
              ElementsAre("", "iteration, ms", "MB/iteration", "link, %", "virtual s"));
  EXPECT_EQ(marks_of(comparison, true),
            "S: after 16 samples, T: after 2 virtual s, as far as all runs came.");
}

TEST(Comparison, AveragesTheLossOfTheLastSteps) {
  const RunData run = steady_run(1, 40, 0);
  const Curve curve = loss_curve(run, By::kSamples);
  EXPECT_THAT(curve.front(), Pair(8, 4));
  EXPECT_THAT(curve[3], Pair(32, (4.0 / 3 + 1) / 2));
}

TEST(Comparison, HasAPageWithAllCurves) {
  const std::string html =
      to_html(seeds_page({{"<fast>", {steady_run(1, 4, 0.1), steady_run(1, 4, 0.2)}},
                          {"slow", {steady_run(2, 4, 0.1)}}},
                         "lenet"));
  for (const char* text :
       {"&lt;fast&gt; has the shortest iteration", "After 32 samples &lt;fast&gt; and slow have",
        "After 4 seconds &lt;fast&gt; has", "60.00 ± 28.28", "Training loss by samples",
        "Test accuracy by time", "class=\"area\""}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
}

}  // namespace
}  // namespace sluice
