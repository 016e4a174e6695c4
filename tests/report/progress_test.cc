#include "report/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace sluice {
namespace {

constexpr Time kSecond{1'000'000'000'000};

ProgressState at_step(std::int64_t step, Time now) {
  return {.epoch = 2,
          .epochs = 5,
          .step = step,
          .steps = 1000,
          .loss = 0.41234,
          .samples = step * 128,
          .now = now};
}

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::ranges::count(text, c));
}

TEST(ProgressTest, ALossThatIsNoneIsNotShown) {
  ProgressState state = at_step(250, 20 * kSecond);
  state.loss.reset();
  EXPECT_EQ(render_progress(state), "epoch 2/5  step 250/1000  1600 samples/s  ETA 1:00");
}

TEST(ProgressTest, ALossThatIsNoNumberIsShown) {
  ProgressState state = at_step(250, 20 * kSecond);
  state.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(render_progress(state), "epoch 2/5  step 250/1000  loss nan  1600 samples/s  ETA 1:00");
}

TEST(ProgressTest, RendersRateAndTimeLeft) {
  EXPECT_EQ(render_progress(at_step(250, 20 * kSecond)),
            "epoch 2/5  step 250/1000  loss 0.4123  1600 samples/s  ETA 1:00");
  EXPECT_EQ(render_progress(at_step(1, 10 * kSecond)),
            "epoch 2/5  step 1/1000  loss 0.4123  13 samples/s  ETA 2:46:30");
}

TEST(ProgressTest, KnowsNoRateBeforeTheFirstStep) {
  EXPECT_EQ(render_progress(at_step(0, kSecond)), "epoch 2/5  step 0/1000  loss 0.4123");
  EXPECT_EQ(render_progress(at_step(1, Time(0))), "epoch 2/5  step 1/1000  loss 0.4123");
}

TEST(ProgressTest, RedrawsATerminalTenTimesASecond) {
  std::ostringstream out;
  Progress progress(out, Progress::Style::kTerminal);
  for (int ms = 1; ms <= 1000; ++ms) {
    progress.update(at_step(ms, ms * kSecond / 1000));
  }
  EXPECT_EQ(count(out.str(), '\r'), 10U);
  EXPECT_EQ(count(out.str(), '\n'), 0U);
  progress.finish();
  EXPECT_EQ(count(out.str(), '\n'), 1U);
  const std::string last = out.str().substr(out.str().rfind('\r'));
  EXPECT_NE(last.find("step 1000/1000"), std::string::npos);
}

TEST(ProgressTest, CutsTheLineToTheTerminal) {
  std::ostringstream out;
  Progress progress(out, Progress::Style::kTerminal, 20);
  progress.update(at_step(1, kSecond));
  EXPECT_EQ(out.str(), "\r\x1b[Kepoch 2/5  step 1/10");
}

TEST(ProgressTest, WritesALineForEveryTenthElsewhere) {
  std::ostringstream out;
  Progress progress(out, Progress::Style::kPlain);
  for (int step = 1; step <= 1000; ++step) {
    progress.update(at_step(step, step * kSecond / 1000));
  }
  progress.finish();
  EXPECT_EQ(count(out.str(), '\n'), 10U);
  EXPECT_EQ(count(out.str(), '\r'), 0U);
  EXPECT_EQ(out.str().find("epoch 2/5  step 100/1000"), 0U);
}

TEST(ProgressTest, WritesALineEveryTenSecondsWhenSlow) {
  std::ostringstream out;
  Progress progress(out, Progress::Style::kPlain);
  for (int step = 1; step <= 31; ++step) {
    progress.update(at_step(step, step * kSecond));
  }
  EXPECT_EQ(count(out.str(), '\n'), 3U);
  progress.finish();
  EXPECT_EQ(count(out.str(), '\n'), 4U);
}

TEST(ProgressTest, SaysNothingOfNothing) {
  std::ostringstream out;
  Progress(out, Progress::Style::kTerminal).finish();
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace sluice
