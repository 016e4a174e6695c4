// Local steps on threads, against a short reference in PyTorch: golden/local_steps.py wrote what a
// linear regression should be after every outer step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nodes/random_pairs.h"
#include "nodes/validate.h"
#include "nodes/validate_update.h"
#include "support/threaded.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

const nlohmann::json& golden_regression() {
  static const nlohmann::json file = nlohmann::json::parse(
      std::ifstream(SLUICE_SOURCE_DIR "/tests/nodes/golden/local_steps.json"));
  return file;
}

// Some linear layers of the same sample, each with targets of its own; half the squared error.
class Regression final : public Learner {
 public:
  explicit Regression(std::size_t rank)
      : samples_(golden_regression().at("samples").at(rank).get<std::vector<Values>>()),
        targets_(golden_regression().at("targets").at(rank).get<std::vector<Values>>()),
        parameters_(golden_regression().at("initial").get<Values>()),
        gradients_(parameters_.size()),
        written_(gradients_) {
    std::vector<std::string> names;
    std::vector<std::int64_t> sizes;
    for (const std::int64_t outputs : golden_regression().at("outputs")) {
      names.push_back(std::to_string(names.size()));
      sizes.push_back(outputs * std::ssize(samples_.front()));
    }
    layers_ = lay_out(names, sizes);
  }

  const std::vector<Layer>& layers() const override { return layers_; }
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradients() override { return written_; }
  void gradients_into(std::span<float> buffer) override { written_ = buffer; }

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    const Values& sample = samples_.at(static_cast<std::size_t>(iteration));
    Values errors = targets_.at(static_cast<std::size_t>(iteration));
    double loss = 0;
    std::size_t i = 0;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      hooks.before_layer(LayerId(l));
      for (; i < static_cast<std::size_t>(layers_[l].range.end); ++i) {
        errors[i / sample.size()] -= parameters_[i] * sample[i % sample.size()];
      }
    }
    for (const float error : errors) {
      loss += 0.5 * std::pow(static_cast<double>(error), 2);
    }
    hooks.forward_done();
    for (std::size_t l = layers_.size(); l-- > 0;) {
      while (i > static_cast<std::size_t>(layers_[l].range.begin)) {
        --i;
        written_[i] = -errors[i / sample.size()] * sample[i % sample.size()];
      }
      hooks.gradient_ready(LayerId(l));
    }
    return loss;
  }

  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  std::vector<Values> samples_;  // by iteration
  std::vector<Values> targets_;  // likewise
  std::vector<Layer> layers_;
  Values parameters_;
  Values gradients_;
  std::span<float> written_;
};

Cadence cadence_of(const nlohmann::json& run) {
  const nlohmann::json& cadence = run.at("cadence");
  const Cadence plain;
  return {.every = cadence.at("every"),
          .synchronous = cadence.value("synchronous", plain.synchronous),
          .outer = cadence.contains("momentum") ? Outer::kNesterov : Outer::kMean,
          .rate = cadence.value("rate", plain.rate),
          .momentum = cadence.value("momentum", plain.momentum),
          .pull = cadence.value("pull", plain.pull),
          .fragments = cadence.value("fragments", plain.fragments),
          .delay = cadence.value("delay", plain.delay),
          .mix = cadence.value("mix", plain.mix)};
}

UpdateRule rule_of(const nlohmann::json& run) {
  const nlohmann::json& inner = run.at("inner");
  return {.rate = {.base = inner.at("learning_rate")},
          .momentum = inner.at("momentum"),
          .weight_decay = inner.at("weight_decay"),
          .optimizer = *value_of(kOptimizerNames, inner.at("optimizer").get<std::string>())};
}

// The reference is of the pairs that it was told.
void expect_pairs(const nlohmann::json& pairs, const Topology& topology, std::uint64_t seed) {
  for (const auto& [iteration, of] : pairs.items()) {
    for (const auto& pair : of) {
      const auto partner =
          partner_of(topology, seed, NodeId(pair.at(0).get<std::size_t>()), std::stoll(iteration));
      ASSERT_EQ(partner, NodeId(pair.at(1).get<std::size_t>())) << iteration;
    }
  }
}

// What is exchanged, and with whom.
Strategy strategy_of(const nlohmann::json& run) {
  const nlohmann::json& cadence = run.at("cadence");
  Strategy strategy;
  strategy.algorithm = Algorithm::kLocal;
  strategy.exchange = cadence.contains("pairs") ? Exchange::kGossip : Exchange::kAllReduce;
  strategy.order = Order::kPriority;
  strategy.slice_params = 5;
  strategy.cadence = cadence_of(run);
  if (cadence.contains("block")) {
    strategy.codec = Codec::kTopK;
    strategy.top_k = {.block = cadence.at("block"), .kept = cadence.at("kept")};
    strategy.error_feedback = true;
    strategy.feedback_decay = cadence.at("decay");
  }
  return strategy;
}

double largest_difference(std::span<const float> actual, const Values& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double difference = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    largest = std::max(largest, std::abs(difference));
  }
  return largest;
}

// One run of the file. Between two outer steps it rests.
void expect_golden(const nlohmann::json& run, const Strategy& strategy) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t rank = 0; rank < run.at("own").size(); ++rank) {
    learners.push_back(std::make_unique<Regression>(rank));
  }
  const Assembly assembly =
      assemble(testing::job_for(learners, Topology(learners.size(), 1, 0), strategy));
  TrainingState state = testing::state_for(learners, assembly, rule_of(run));
  Iteration at = 0;
  for (const nlohmann::json& outer_step : run.at("outer_steps")) {
    const Iteration last = outer_step.at("step");
    testing::run_phase(assembly, state, last, nullptr, {}, at);
    at = last;
    for (std::size_t rank = 0; rank < learners.size(); ++rank) {
      const auto global = state.workspace(NodeId(rank)).global_parameters();
      auto expected = outer_step.at("global").get<Values>();
      if (expected.size() > global.size()) {  // those of each worker
        expected.erase(expected.begin(),
                       expected.begin() + std::ssize(global) * static_cast<std::ptrdiff_t>(rank));
        expected.resize(global.size());
      }
      EXPECT_LT(largest_difference(global, expected), 1e-6) << "iteration " << last;
    }
  }
  const Iteration steps = golden_regression().at("steps");
  if (at < steps) {
    testing::run_phase(assembly, state, steps, nullptr, {}, at);
  }
  for (std::size_t rank = 0; rank < learners.size(); ++rank) {
    EXPECT_LT(
        largest_difference(learners[rank]->parameters(), run.at("own").at(rank).get<Values>()),
        1e-6)
        << "rank " << rank;
  }
}

TEST(LocalStepsThreads, AreThoseOfTheReferenceInPyTorch) {
  for (const auto& [name, run] : golden_regression().at("runs").items()) {
    const UpdateRule rule = rule_of(run);
    Strategy strategy = strategy_of(run);
    strategy.sums_first = sums_first(rule);
    if (run.at("cadence").contains("pairs")) {
      expect_pairs(run.at("cadence").at("pairs"), Topology(run.at("own").size(), 1, 0),
                   strategy.seed);
    }
    for (const Partition partition : {Partition::kLayer, Partition::kSlice}) {
      if (partition == Partition::kSlice && strategy.codec == Codec::kTopK) {
        continue;  // the reference has the blocks of layers
      }
      SCOPED_TRACE(name + ", partition " + std::string(name_of(kPartitionNames, partition)));
      strategy.partition = partition;
      ASSERT_TRUE(validate(strategy));
      ASSERT_TRUE(validate(rule, strategy));
      ASSERT_GT(run.at("outer_steps").size(), 1U);
      expect_golden(run, strategy);
    }
  }
}

}  // namespace
}  // namespace sluice
