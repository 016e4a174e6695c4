#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sluice/loop.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <csignal>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "base/random.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kIterations = 12;

struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return exit(entry(x).tanh()); }

  torch::nn::Linear exit{register_module("exit", torch::nn::Linear(5, 3))};
  torch::nn::Linear entry{register_module("entry", torch::nn::Linear(6, 5))};
};
TORCH_MODULE(Net);

at::Tensor numbers(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  at::Tensor tensor = at::zeros(shape);
  Random random(seed);
  for (float* value = tensor.data_ptr<float>(); value != tensor.data_ptr<float>() + tensor.numel();
       ++value) {
    *value = static_cast<float>(random.uniform() - 0.5);
  }
  return tensor;
}

// Parameters that are a function of the seed.
Net make_net(std::uint64_t seed) {
  Net net;
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(numbers(parameter.sizes().vec(), ++seed));
  }
  return net;
}

at::Tensor loss_of(Net& net, std::size_t rank, std::int64_t iteration) {
  const auto seed = static_cast<std::uint64_t>(iteration) * 10 + rank;
  return at::cross_entropy_loss(net->forward(numbers({4, 6}, seed)),
                                at::full({4}, iteration % 3, at::kLong));
}

void attach(LoopWorker& worker, Net& net) {
  worker.attach(*net, [&] { net->forward(at::zeros({1, 6})); });
}

LoopOptions options_for(const std::string& preset) {
  LoopOptions options;
  options.preset = preset;
  options.workers = 3;
  options.iterations = kIterations;
  options.learning_rate = 0.2F;
  options.weight_decay = 0.01F;
  return options;
}

std::vector<at::Tensor> copies_of(const Net& net) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& parameter : net->parameters()) {
    copies.push_back(parameter.detach().clone());
  }
  return copies;
}

// What all workers together should arrive at, computed by one.
std::vector<at::Tensor> expected(const LoopOptions& options) {
  Net net = make_net(100);
  std::vector<at::Tensor> velocity;
  for (const at::Tensor& parameter : net->parameters()) {
    velocity.push_back(at::zeros(parameter.sizes()));
  }
  for (std::int64_t i = 0; i < options.iterations; ++i) {
    std::vector<at::Tensor> losses;
    for (std::size_t rank = 0; rank < options.workers; ++rank) {
      losses.push_back(loss_of(net, rank, i));
    }
    net->zero_grad();
    at::stack(losses).mean().backward();
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> parameters = net->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      velocity[p]
          .mul_(options.momentum)
          .add_(parameters[p].grad() + parameters[p] * options.weight_decay);
      parameters[p].sub_(velocity[p] * options.learning_rate);
    }
  }
  return copies_of(net);
}

std::string failure_of(const LoopOptions& options, const std::function<void(LoopWorker&)>& loop) {
  try {
    run_loops(options, loop);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

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
  EXPECT_EQ(take_steps(options, [] { std::raise(SIGINT); }), SIGINT);
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
