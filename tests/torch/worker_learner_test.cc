// Learners of several workers, and what they evaluate.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "torch/recorded_hooks.h"
#include "torch/some_learners.h"

namespace sluice {
namespace {

TEST(WorkerLearnerTest, LearnersInTwoThreadsDoNotDisturbEachOther) {
  const LearnerFactory make = lenet_learners();
  constexpr Iteration kSteps = 5;
  const auto run = [&](std::size_t rank, Floats& gradients) {
    const auto learner = make(rank);
    for (Iteration iteration = 0; iteration < kSteps; ++iteration) {
      RecordedHooks hooks;
      learner->step(iteration, hooks);
      EXPECT_EQ(hooks.calls.size(), 2 * learner->layers().size() + 1);
    }
    gradients = copy_of(learner->gradients());
  };
  std::vector<Floats> alone(2);
  std::vector<Floats> together(2);
  run(0, alone[0]);
  run(1, alone[1]);
  std::thread first([&] { run(0, together[0]); });
  std::thread second([&] { run(1, together[1]); });
  first.join();
  second.join();
  EXPECT_EQ(together, alone);
  EXPECT_NE(alone[0], alone[1]);
}

TEST(WorkerLearnerTest, FrozenParametersAreEqualOnAllWorkers) {
  const LearnerFactory make = learners_of("cifar100-convex", task_with({3, 32, 32}, 10));
  const auto first = make(0);
  const auto second = make(1);
  EXPECT_EQ(first->parameters().size(), 650U);
  EXPECT_EQ(first->evaluate()->loss, second->evaluate()->loss);
}

// Every worker has its own running statistics. They affect only its evaluations.
TEST(WorkerLearnerTest, StepsGatherStatisticsForEvaluations) {
  const auto learner = googlenet_learners()(0);
  const double before = learner->evaluate()->loss;
  RecordedHooks ignored;
  const auto loss = learner->step(0, ignored);
  EXPECT_NE(learner->evaluate()->loss, before);
  EXPECT_EQ(learner->step(0, ignored), loss);
}

class Normed final : public torch::nn::Module {
 public:
  Normed()
      : entry_(register_module("entry", torch::nn::Linear(6, 5))),
        norm_(register_module("norm", torch::nn::BatchNorm1d(5))),
        frozen_(register_parameter("frozen", at::full({5}, 0.2F), false)),
        exit_(register_module("exit", torch::nn::Linear(5, 3))) {}

  at::Tensor forward(const at::Tensor& features) {
    return exit_(norm_(entry_(features)).tanh() + frozen_);
  }

 private:
  torch::nn::Linear entry_;
  torch::nn::BatchNorm1d norm_;
  at::Tensor frozen_;
  torch::nn::Linear exit_;
};

// For parameters that come from elsewhere: the mean of all workers, say.
TEST(WorkerLearnerTest, EstimatedStatisticsDependOnTheParametersAlone) {
  const LearnerFactory make = make_network_learners(
      [] { return network_of(std::make_shared<Normed>()); }, task_with({6}, 3));
  const auto fresh = make(0);
  const auto trained = make(0);
  RecordedHooks ignored;
  for (Iteration i = 0; i < 3; ++i) {
    trained->step(i, ignored);
  }
  const double before = trained->evaluate()->loss;
  EXPECT_NE(fresh->evaluate()->loss, before);
  fresh->estimate_statistics();
  trained->estimate_statistics();
  const double estimated = trained->evaluate()->loss;
  EXPECT_EQ(fresh->evaluate()->loss, estimated);
  EXPECT_NE(estimated, before);
  // Much training on the same samples comes to nearly the same.
  for (Iteration i = 0; i < 200; ++i) {
    trained->step(i, ignored);
  }
  EXPECT_NEAR(trained->evaluate()->loss, estimated, 0.3 * std::abs(before - estimated));
  EXPECT_EQ(copy_of(trained->parameters()), copy_of(make(1)->parameters()));
}

// With its parameters, that is all that another learner needs to go on.
TEST(WorkerLearnerTest, WhatItRemembersCanBeRecalled) {
  const LearnerFactory make = make_network_learners(
      [] { return network_of(std::make_shared<Normed>()); }, task_with({6}, 3));
  const auto trained = make(0);
  RecordedHooks ignored;
  for (Iteration i = 0; i < 3; ++i) {
    trained->step(i, ignored);
  }
  const std::vector<TensorCopy> copies = trained->remembered();
  std::vector<StoredTensor> saved;
  for (const TensorCopy& copy : copies) {
    saved.push_back(copy.view());
  }
  const auto other = make(0);
  EXPECT_NE(other->evaluate()->loss, trained->evaluate()->loss);
  ASSERT_TRUE(other->recall(saved));
  EXPECT_EQ(other->evaluate()->loss, trained->evaluate()->loss);
  saved.front().shape = {3};
  EXPECT_FALSE(other->recall(saved));
  saved.pop_back();
  EXPECT_FALSE(other->recall(saved));
}

// Dropout is a function of iteration and worker: no two steps drop the same inputs.
TEST(WorkerLearnerTest, WorkersDropOutDifferentUnits) {
  TorchTask task = task_with({3, 63, 63}, 3);
  task.batch = 1;
  const auto same = std::make_shared<DataSet>(*std::static_pointer_cast<const DataSet>(task.train));
  for (std::int64_t i = 1; i < same->size(); ++i) {
    std::ranges::copy(same->sample(0), same->features.begin() + i * same->sample_size());
    same->labels[static_cast<std::size_t>(i)] = same->labels[0];
  }
  task.train = same;
  const LearnerFactory make = learners_of("alexnet", task);
  const auto learner = make(0);
  RecordedHooks ignored;
  const auto loss = learner->step(0, ignored);
  EXPECT_NE(learner->step(1, ignored), loss);
  EXPECT_NE(make(1)->step(0, ignored), loss);
  EXPECT_EQ(learner->step(0, ignored), loss);
}

TEST(WorkerLearnerTest, EvaluatesWithTheParametersAsTheyAre) {
  const auto learner = crooked_learners()(0);
  std::ranges::fill(learner->parameters(), 0.0F);
  // With all parameters zero, all three classes get the same score.
  EXPECT_NEAR(learner->evaluate()->loss, std::log(3.0), 1e-6);
  const Layer& exit = learner->layers()[3];
  part(learner->parameters(), exit).back() = 100;  // the bias of class 2
  std::int64_t twos = 0;
  const TorchTask task = task_with({6}, 3);
  for (std::int64_t i = 0; i < task.test->size(); ++i) {
    Batch one;
    task.test->load(std::array{i}, 0, one);
    twos += one.labels.front() == 2 ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(*learner->evaluate()->accuracy,
                   static_cast<double>(twos) / static_cast<double>(task.test->size()));
}

}  // namespace
}  // namespace sluice
