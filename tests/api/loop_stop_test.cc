#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <limits>
#include <mutex>

#include "api/some_loops.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// All stop after the same step, and have learnt what a run of that length learns.
TEST(LoopStopThreadsTest, ASignalStopsAllAfterTheirSteps) {
  for (const std::string preset : {"p3", "wfbp", "asp"}) {
    SCOPED_TRACE(preset);
    LoopOptions options = options_for(preset);
    options.iterations = 1'000'000;
    std::mutex mutex;
    std::vector<std::int64_t> steps(options.workers, 0);
    std::vector<std::vector<at::Tensor>> ends(options.workers);
    const int signal = run_loops(options, [&](LoopWorker& worker) {
      Net net = make_net(100);
      attach(worker, net);
      std::int64_t taken = 0;
      try {
        for (; taken < options.iterations; ++taken) {
          if (worker.rank() == 1 && taken == 4) {
            std::raise(SIGTERM);
          }
          worker.step([&] { return loss_of(net, worker.rank(), taken); });
        }
      } catch (const Stopped&) {
        worker.wait();
      }
      const std::lock_guard lock(mutex);
      steps[worker.rank()] = taken;
      ends[worker.rank()] = copies_of(net);
    });
    EXPECT_EQ(signal, SIGTERM);
    EXPECT_GE(steps[1], 4);
    if (preset != "asp") {
      EXPECT_EQ(steps, std::vector<std::int64_t>(options.workers, steps[0]));
      options.iterations = steps[0];
      const std::vector<at::Tensor> truth = expected(options);
      for (const auto& parameters : ends) {
        for (std::size_t p = 0; p < truth.size(); ++p) {
          EXPECT_TRUE(parameters[p].allclose(truth[p], 1e-4, 1e-5)) << p;
        }
      }
    }
  }
}

// Takes all steps; worker 1 does this before its third.
int take_steps(const LoopOptions& options, const std::function<void()>& before_third) {
  return run_loops(options, [&](LoopWorker& worker) {
    Net net;
    attach(worker, net);
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      if (worker.rank() == 1 && i == 2) {
        before_third();
      }
      worker.step([&] { return loss_of(net, worker.rank(), i); });
    }
  });
}

TEST(LoopStopThreadsTest, ALoopNeedNotCatchTheStop) {
  LoopOptions options = options_for("p3");
  options.iterations = 1'000'000;
  // A shell may have started this program with SIGINT ignored, which Sluice respects.
  const auto before = std::signal(SIGINT, SIG_DFL);
  EXPECT_EQ(take_steps(options, [] { std::raise(SIGINT); }), SIGINT);
  std::signal(SIGINT, before);
  options.iterations = 3;
  EXPECT_EQ(take_steps(options, [] {}), 0) << "an earlier signal is forgotten";
}

TEST(LoopStopThreadsTest, SignalsCanBeLeftToTheProgram) {
  static std::atomic<int> seen;
  seen = 0;
  const auto before = std::signal(SIGTERM, [](int) { ++seen; });
  LoopOptions options = options_for("p3");
  options.stop_on_signal = false;
  EXPECT_EQ(take_steps(options, [] { std::raise(SIGTERM); }), 0);
  std::signal(SIGTERM, before);
  EXPECT_EQ(seen, 1);
}

// Worker 1's loss is not finite in its fourth step.
std::string failure_of_spoilt(const LoopOptions& options, float factor) {
  return failure_of(options, [&](LoopWorker& worker) {
    Net net;
    attach(worker, net);
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      const float scale = worker.rank() == 1 && i == 3 ? factor : 1.0F;
      worker.step([&] { return loss_of(net, worker.rank(), i) * scale; });
    }
  });
}

TEST(LoopStopThreadsTest, WhatIsNotFiniteEndsTheRun) {
  LoopOptions options = options_for("p3");
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::string failure = failure_of_spoilt(options, kNaN);
  EXPECT_THAT(failure,
              HasSubstr("rank 1: the gradient of layer exit is not finite in iteration 4"));
  EXPECT_THAT(failure, HasSubstr("stop_on_nonfinite = false"));
  EXPECT_THAT(failure_of(options,
                         [&](LoopWorker& worker) {
                           Net net;
                           attach(worker, net);
                           for (std::int64_t i = 0; i < options.iterations; ++i) {
                             worker.step([&] {
                               at::Tensor loss = loss_of(net, worker.rank(), i);
                               return worker.rank() == 2 && i == 1
                                          ? loss + std::numeric_limits<float>::infinity()
                                          : loss;
                             });
                           }
                         }),
              HasSubstr("rank 2: the loss is not finite in iteration 2"));
  options.stop_on_nonfinite = false;
  testing::internal::CaptureStderr();
  EXPECT_EQ(failure_of_spoilt(options, kNaN), "none");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("sluice: rank 1: the gradient of layer exit is not finite in iteration 4; "
                        "the run continues"));
}

}  // namespace
}  // namespace sluice
