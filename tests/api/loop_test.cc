// Loops of a program that runs alone.

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "api/some_loops.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<torch::optim::Optimizer> make_sgd(const std::vector<at::Tensor>& tensors) {
  return std::make_unique<torch::optim::SGD>(
      tensors, torch::optim::SGDOptions(0.2).momentum(0.9).weight_decay(0.01));
}

std::string failure_of(const std::function<void(LoopWorker&)>& loop) {
  try {
    run_loop(loop);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

TEST(LoopTest, AnyOptimizerUpdatesAsWithoutSluice) {
  using Tensors = std::vector<at::Tensor>;
  for (const MakeOptimizer& make : std::vector<MakeOptimizer>{
           make_sgd, make_adam,
           [](const Tensors& t) {
             return std::make_unique<torch::optim::AdamW>(t, torch::optim::AdamWOptions(0.05));
           },
           [](const Tensors& t) {
             return std::make_unique<torch::optim::RMSprop>(t, torch::optim::RMSpropOptions(0.01));
           },
           [](const Tensors& t) {
             return std::make_unique<torch::optim::Adagrad>(t, torch::optim::AdagradOptions(0.1));
           }}) {
    std::vector<at::Tensor> found;
    run_loop([&](LoopWorker& worker) { found = trained(worker, make); });
    EXPECT_TRUE(near(found, expected(1, make)));
  }
}

TEST(LoopTest, GoesOnFromItsNewestSoundCheckpoint) {
  for (const MakeOptimizer& make : {MakeOptimizer(make_sgd), MakeOptimizer(make_adam)}) {
    const TemporaryFolder folder;
    const std::string kept = (folder.path() / "kept").string();
    std::vector<at::Tensor> calm;
    run_loop([&](LoopWorker& worker) { calm = trained(worker, make); });
    std::vector<at::Tensor> found;
    for (const std::int64_t end : {std::int64_t{3}, std::int64_t{8}, kSteps, kSteps}) {
      run_loop([&](LoopWorker& worker) { found = trained_until(worker, make, end, kept); });
      if (end == 8) {  // the next goes on after 3
        std::filesystem::resize_file(kept + "/iteration-8/host-0.safetensors", 100);
      }
    }
    EXPECT_TRUE(equal(found, calm));
  }
}

TEST(LoopThreadsTest, AWorkerAloneMakesOuterStepsToo) {
  LoopOptions options{.preset = "diloco"};
  options.every = 3;
  for (const std::int64_t delay : {0, 1}) {
    options.outer_delay = delay;
    options.outer_mix = delay == 0 ? 0 : 0.5;
    std::vector<at::Tensor> found;
    run_loop([&](LoopWorker& worker) { found = trained(worker, make_adam, options); });
    EXPECT_TRUE(near(found, expected_locally(1, make_adam, options))) << delay;
  }
}

TEST(LoopThreadsTest, LocalStepsAloneGoOnFromTheirCheckpoint) {
  LoopOptions options{.preset = "diloco"};
  options.every = 5;
  const TemporaryFolder folder;
  const std::string kept = (folder.path() / "kept").string();
  std::vector<at::Tensor> calm;
  run_loop([&](LoopWorker& worker) { calm = trained(worker, make_sgd, options); });
  std::vector<at::Tensor> found;
  for (const std::int64_t end : {std::int64_t{3}, std::int64_t{8}, kSteps}) {
    run_loop(
        [&](LoopWorker& worker) { found = trained_until(worker, make_sgd, end, kept, options); });
  }
  EXPECT_TRUE(equal(found, calm));
}

TEST(LoopThreadsTest, TheGlobalParametersAreShownForAWhile) {
  run_loop([](LoopWorker& worker) {
    Net net = make_net(1);
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
    LoopOptions options{.preset = "local-sgd"};
    options.every = 3;
    LoopModel& model = attach(worker, net, sgd, options);
    const std::vector<at::Tensor> first = copies_of(net);
    model.step([&] { return loss_of(net, 0, 0); });
    const std::vector<at::Tensor> own = copies_of(net);
    EXPECT_FALSE(equal(own, first));
    EXPECT_THROW(model.with_global_parameters([&] {
      EXPECT_TRUE(equal(copies_of(net), first)) << "there was no outer step yet";
      throw std::runtime_error("the evaluation failed");
    }),
                 std::runtime_error);
    EXPECT_TRUE(equal(copies_of(net), own));
  });
}

TEST(LoopTest, ACheckpointMustFit) {
  const TemporaryFolder folder;
  const std::string kept = (folder.path() / "kept").string();
  run_loop([&](LoopWorker& worker) { trained_until(worker, make_adam, 2, kept); });
  EXPECT_THAT(failure_of([&](LoopWorker& worker) { worker.load_checkpoint(kept); }),
              HasSubstr("is nothing that this loop has"));
  EXPECT_THAT(failure_of([&](LoopWorker& worker) {
                worker.load_checkpoint(kept, {{"other", at::ones({1})}});
              }),
              HasSubstr("has no more.other"));
  EXPECT_THAT(
      failure_of([&](LoopWorker& worker) { worker.save_checkpoint(folder.write("file", ""), 1); }),
      HasSubstr("checkpoint "));
}

TEST(LoopTest, GradientsOfSeveralPassesAddUp) {
  std::vector<at::Tensor> found;
  run_loop([&](LoopWorker& worker) { found = trained(worker, make_sgd, {}, 3); });
  EXPECT_TRUE(near(found, expected(1, make_sgd)));
}

TEST(LoopTest, AHookSeesEachLayerBeforeItLeaves) {
  run_loop([](LoopWorker& worker) {
    Net net = make_net(7);
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(1));
    LoopModel& model = attach(worker, net, sgd);
    std::vector<std::string> seen;
    model.on_gradients([&](const std::string& layer, const std::vector<at::Tensor>& gradients) {
      seen.push_back(layer);
      EXPECT_EQ(gradients.size(), 2U);
      for (at::Tensor gradient : gradients) {
        gradient.fill_(0.5);
      }
    });
    const std::vector<at::Tensor> before = copies_of(net);
    model.step([&] { return loss_of(net, 0, 0); });
    model.wait();
    EXPECT_THAT(seen, ElementsAre("exit", "entry"));
    std::vector<at::Tensor> after = copies_of(net);
    for (at::Tensor& parameter : after) {
      parameter += 0.5;
    }
    EXPECT_TRUE(near(before, after));
    EXPECT_EQ(model.metrics().steps, 1);
  });
}

// As of a GAN: the loss of one model passes through the other.
TEST(LoopTest, AStepOfOneModelLeavesAnotherAlone) {
  run_loop([](LoopWorker& worker) {
    Net maker = make_net(1);
    torch::nn::Linear critic(3, 1);
    torch::optim::SGD of_maker(maker->parameters(), torch::optim::SGDOptions(0.1));
    torch::optim::SGD of_critic(critic->parameters(), torch::optim::SGDOptions(0.1));
    LoopModel& making = attach(worker, maker, of_maker);
    LoopModel& critique = worker.attach(*critic, of_critic, [&] {
      critic->forward(at::zeros({1, 3}));
    });
    const auto loss = [&] { return critic->forward(maker->forward(at::ones({1, 6}))).mean(); };
    const at::Tensor weight = critic->weight.detach().clone();
    making.step(loss);
    making.wait();
    EXPECT_TRUE(critic->weight.equal(weight));
    const at::Tensor gradient = maker->forward(at::ones({1, 6})).detach();
    const std::vector<at::Tensor> made = copies_of(maker);
    critique.step(loss);
    critique.wait();
    EXPECT_TRUE(critic->weight.allclose(weight - 0.1 * gradient, 1e-5, 1e-6));
    EXPECT_TRUE(near(copies_of(maker), made));
  });
}

TEST(LoopTest, TheProgramMayReadParametersInItsLoop) {
  run_loop([](LoopWorker& worker) {
    EXPECT_EQ(worker.rank(), 0U);
    EXPECT_EQ(worker.workers(), 1U);
    EXPECT_EQ(worker.local_rank(), 0U);
    EXPECT_EQ(worker.mean(2.5), 2.5);
    worker.barrier();
    at::Tensor three = at::full({2}, 3.0F);
    worker.broadcast(three, 0);
    EXPECT_TRUE(three.equal(at::full({2}, 3.0F)));
  });
}

TEST(LoopTest, ErrorsSayWhatToDo) {
  const auto failure = [](const LoopOptions& options, const std::function<at::Tensor(Net&)>& loss) {
    return failure_of([&](LoopWorker& worker) {
      Net net = make_net(1);
      torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
      attach(worker, net, sgd, options).step([&] { return loss(net); });
    });
  };
  const auto mean = [](Net& net) { return loss_of(net, 0, 0); };
  EXPECT_EQ(failure({}, mean), "none");
  EXPECT_THAT(failure({}, [](Net&) { return at::Tensor(); }), HasSubstr("return the loss"));
  EXPECT_THAT(failure({},
                      [](Net& net) {
                        return net->forward(at::ones({2, 6}));
                      }),
              HasSubstr("a tensor of shape [2, 3], expected a single number"));
  EXPECT_THAT(failure({}, [](Net&) { return at::ones({}); }), HasSubstr("without a gradient"));
  EXPECT_THAT(
      failure({},
              [](Net& net) {
                return net->forward(at::full({1, 6}, std::numeric_limits<float>::infinity())).sum();
              }),
      HasSubstr("the gradient of layer exit is not finite in step 0 of rank 0"));
  LoopOptions options;
  options.preset = "asp";
  EXPECT_THAT(failure(options, mean), HasSubstr("algorithm asp"));
  options.preset = "no";
  EXPECT_THAT(failure(options, mean), HasSubstr("no preset no sums gradients"));
  options = {};
  options.order = "random";
  EXPECT_THAT(failure(options, mean), HasSubstr("order: is \"random\", expected one of fifo"));
  options = {};
  options.every = 4;
  EXPECT_THAT(failure(options, mean), HasSubstr("take algorithm local-steps, or leave them out"));
  options.preset = "diloco";
  options.fragments = 5;
  EXPECT_THAT(failure(options, mean), HasSubstr("fragments 5 and every 4 do not go together"));
  options.fragments = 0;
  EXPECT_THAT(failure(options, mean), HasSubstr("fragments: is 0, expected 1 to "));
  options = {};
  options.preset = "post-local-sgd";
  EXPECT_THAT(failure(options, mean), HasSubstr("synchronous-first is not for a program's own"));
  options = {};
  options.codec = "dgc";
  EXPECT_THAT(failure(options, mean), HasSubstr("codec dgc do not sum gradients"));
  EXPECT_THAT(failure_of([](LoopWorker& worker) {
                Net net = make_net(1);
                torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
                worker.attach(*net->entry, sgd, [&] { net->forward(at::zeros({1, 6})); });
              }),
              HasSubstr("the optimizer has a parameter of shape [3, 5] that is not attached"));
}

}  // namespace
}  // namespace sluice
