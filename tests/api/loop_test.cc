#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>

#include "api/some_loops.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class LoopThreadsTest : public testing::TestWithParam<std::string> {};

TEST_P(LoopThreadsTest, TrainsAsOneLargeBatchWould) {
  const LoopOptions options = options_for(GetParam());
  std::mutex mutex;
  std::vector<std::vector<at::Tensor>> ends(options.workers);
  run_loops(options, [&](LoopWorker& worker) {
    // Only the values of worker 0 count.
    Net net = make_net(100 + worker.rank());
    attach(worker, net);
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      if (i % 5 == 0) {
        worker.wait();
        EXPECT_TRUE(net->parameters()[0].isfinite().all().item().toBool());
      }
      const double loss = worker.step([&] { return loss_of(net, worker.rank(), i); });
      EXPECT_GT(loss, 0);
    }
    worker.wait();
    const std::lock_guard lock(mutex);
    EXPECT_EQ(worker.workers(), 3U);
    ends.at(worker.rank()) = copies_of(net);
  });
  const std::vector<at::Tensor> truth = expected(options);
  for (const auto& parameters : ends) {
    ASSERT_EQ(parameters.size(), truth.size());
    for (std::size_t p = 0; p < truth.size(); ++p) {
      EXPECT_TRUE(parameters[p].allclose(truth[p], 1e-4, 1e-5)) << p;
      EXPECT_TRUE(parameters[p].equal(ends[0][p])) << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, LoopThreadsTest, testing::Values("p3", "kvstore", "wfbp"));

TEST(LoopFailureThreadsTest, ALoopThatFailsEndsAll) {
  const LoopOptions options = options_for("p3");
  EXPECT_EQ(failure_of(options,
                       [&](LoopWorker& worker) {
                         Net net;
                         attach(worker, net);
                         for (std::int64_t i = 0; i < options.iterations; ++i) {
                           if (worker.rank() == 1 && i == 3) {
                             throw std::runtime_error("out of data");
                           }
                           worker.step([&] { return loss_of(net, worker.rank(), i); });
                         }
                       }),
            "out of data");
  EXPECT_EQ(failure_of(options, [](LoopWorker&) { throw std::runtime_error("no net"); }), "no net");
  std::atomic<int> waited = 0;
  EXPECT_EQ(failure_of(options,
                       [&](LoopWorker& worker) {
                         Net net;
                         attach(worker, net);
                         for (std::int64_t i = 0; i < options.iterations; ++i) {
                           worker.step([&] { return loss_of(net, worker.rank(), i); });
                         }
                         worker.wait();
                         ++waited;
                         throw std::runtime_error("cannot save");
                       }),
            "cannot save");
  EXPECT_EQ(waited, 3);
}

// Runs one step with this closure.
std::string failure_of_step(const std::function<at::Tensor(Net& net, LoopWorker& worker)>& loss) {
  LoopOptions options = options_for("p3");
  options.workers = 2;
  return failure_of(options, [&](LoopWorker& worker) {
    Net net;
    attach(worker, net);
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      worker.step([&] { return loss(net, worker); });
    }
  });
}

TEST(LoopFailureThreadsTest, AClosureReturnsALossAndLeavesBackwardToTheStep) {
  EXPECT_THAT(failure_of_step([](Net& net, LoopWorker& worker) {
                at::Tensor loss = loss_of(net, worker.rank(), 0);
                loss.backward();
                return loss;
              }),
              HasSubstr("return the loss from the closure of step(), which calls backward()"));
  EXPECT_THAT(failure_of_step([](Net& net, LoopWorker&) {
                return net->forward(at::zeros({4, 6}));
              }),
              HasSubstr("a tensor of shape [4, 3], expected a single number: return the mean"));
  EXPECT_THAT(failure_of_step([](Net&, LoopWorker&) { return at::Tensor(); }),
              HasSubstr("returned no tensor"));
  EXPECT_THAT(failure_of_step([](Net& net, LoopWorker& worker) {
                return loss_of(net, worker.rank(), 0).detach();
              }),
              HasSubstr("a loss without a gradient"));
  EXPECT_THAT(failure_of_step([](Net& net, LoopWorker& worker) {
                worker.step([&] { return loss_of(net, worker.rank(), 0); });
                return loss_of(net, worker.rank(), 1);
              }),
              HasSubstr("step() was called in the closure of step()"));
}

TEST(LoopFailureThreadsTest, BackwardBetweenStepsIsRefused) {
  const LoopOptions options = options_for("p3");
  std::atomic<int> refused = 0;
  run_loops(options, [&](LoopWorker& worker) {
    Net net;
    attach(worker, net);
    for (std::int64_t i = 0; i < options.iterations; ++i) {
      try {
        loss_of(net, worker.rank(), i).backward();
      } catch (const std::logic_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("outside of its own backward pass"));
        ++refused;
      }
      worker.step([&] { return loss_of(net, worker.rank(), i); });
    }
  });
  EXPECT_EQ(refused, 3 * kIterations);
}

// The same nets go on; a plain backward pass works again afterwards.
TEST(LoopAgainThreadsTest, RunsOneAfterAnother) {
  LoopOptions options = options_for("p3");
  options.momentum = 0;
  std::vector<Net> nets;
  for (std::uint64_t seed = 0; seed < options.workers; ++seed) {
    nets.push_back(make_net(100 + seed));
  }
  for (const std::int64_t first : {std::int64_t{0}, kIterations / 2}) {
    LoopOptions half = options;
    half.iterations = kIterations / 2;
    run_loops(half, [&](LoopWorker& worker) {
      Net& net = nets[worker.rank()];
      attach(worker, net);
      for (std::int64_t i = first; i < first + half.iterations; ++i) {
        worker.step([&] { return loss_of(net, worker.rank(), i); });
      }
      worker.wait();
    });
  }
  const std::vector<at::Tensor> truth = expected(options);
  for (Net& net : nets) {
    const std::vector<at::Tensor> parameters = copies_of(net);
    for (std::size_t p = 0; p < truth.size(); ++p) {
      EXPECT_TRUE(parameters[p].allclose(truth[p], 1e-4, 1e-5)) << p;
    }
    EXPECT_NO_THROW(loss_of(net, 0, 0).backward());
  }
}

TEST(LoopFailureThreadsTest, StepsAreAsManyAsIterations) {
  const LoopOptions options = options_for("p3");
  const auto take = [&](std::int64_t steps) {
    return failure_of(options, [&](LoopWorker& worker) {
      Net net;
      attach(worker, net);
      for (std::int64_t i = 0; i < steps; ++i) {
        worker.step([&] { return loss_of(net, worker.rank(), i); });
      }
    });
  };
  EXPECT_THAT(take(kIterations - 1), HasSubstr("ended after 11 of 12 steps"));
  EXPECT_THAT(take(kIterations + 1), HasSubstr("more steps than its 12 iterations"));
  EXPECT_THAT(failure_of(options, [](LoopWorker&) {}), HasSubstr("ended after 0 of 12 steps"));
  EXPECT_THAT(failure_of(options, [](LoopWorker& worker) { worker.wait(); }),
              HasSubstr("attach() must come before"));
}

TEST(LoopFailureThreadsTest, RefusesWhatMakesNoSense) {
  const auto nothing = [](LoopWorker&) {};
  EXPECT_THAT(failure_of(options_for("p4"), nothing),
              HasSubstr("there is no preset p4 for loops; choose one of "));
  EXPECT_THAT(failure_of(options_for("mg-wfbp"), nothing), HasSubstr("no preset mg-wfbp"));
  LoopOptions none = options_for("p3");
  none.workers = 0;
  EXPECT_THAT(failure_of(none, nothing), HasSubstr("at least one worker"));
  LoopOptions served = options_for("wfbp");
  served.servers = 1;
  EXPECT_THAT(failure_of(served, nothing), HasSubstr("preset wfbp has no servers"));
  EXPECT_THAT(failure_of(options_for("p3"),
                         [](LoopWorker& worker) {
                           torch::nn::Linear net(2, worker.rank() == 2 ? 4 : 3);
                           worker.attach(*net, [&] { net->forward(at::zeros({1, 2})); });
                         }),
              HasSubstr("the layers of worker 2 differ from those of worker 0: model 12; expected "
                        "model 9"));
  EXPECT_THAT(failure_of(options_for("p3"),
                         [](LoopWorker& worker) {
                           torch::nn::Linear net(2, 3);
                           net->to(at::kDouble);
                           worker.attach(*net, [] {});
                         }),
              HasSubstr("parameter weight must be of type float"));
  EXPECT_THAT(
      failure_of(options_for("p3"),
                 [](LoopWorker& worker) { worker.attach(LoopWorker::NamedParameters{}, [] {}); }),
      HasSubstr("no parameter requires a gradient"));
}

}  // namespace
}  // namespace sluice
