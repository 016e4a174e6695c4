#include "compute/torch/network_learner.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compute/data/sharding.h"
#include "compute/torch/flat_parameters.h"
#include "compute/torch/forward_gate.h"
#include "compute/torch/gradient_hooks.h"
#include "compute/torch/layer_calls.h"
#include "compute/torch/layout.h"

namespace sluice {
namespace {

constexpr std::int64_t kEvaluationBatch = 500;

// What all learners of a run share.
struct Blueprint {
  NetworkFactory make_network;
  TorchTask task;
  Layout layout;
  std::vector<float> initial;  // in the order of the layout
};

std::vector<std::int64_t> batch_shape(std::int64_t batch, const DataSet& data) {
  std::vector<std::int64_t> shape{batch};
  shape.insert(shape.end(), data.sample_shape.begin(), data.sample_shape.end());
  return shape;
}

std::vector<at::Tensor> in_order(const std::vector<NamedTensor>& parameters,
                                 const std::vector<std::size_t>& order) {
  std::vector<at::Tensor> tensors;
  for (const std::size_t index : order) {
    tensors.push_back(parameters[index].tensor);
  }
  return tensors;
}

// The samples begin ... end-1, not to be written to.
at::Tensor features_of(const DataSet& data, std::int64_t begin, std::int64_t end) {
  return at::from_blob(const_cast<float*>(data.sample(begin).data()),
                       batch_shape(end - begin, data), at::kFloat);
}

at::Tensor labels_of(const DataSet& data, std::int64_t begin, std::int64_t end) {
  return at::from_blob(const_cast<std::int64_t*>(data.labels.data() + begin), {end - begin},
                       at::kLong);
}

Layout record_layout(Network& network, const TorchTask& task) {
  std::vector<ParameterSize> sizes;
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : network.parameters()) {
    sizes.push_back({parameter.name, parameter.tensor.numel()});
    tensors.push_back(parameter.tensor);
  }
  const at::NoGradGuard no_grad;
  std::vector<std::size_t> reads;
  ForwardGate(tensors).run([&] { return network.forward(features_of(*task.train, 0, task.batch)); },
                           [&](std::size_t parameter) { reads.push_back(parameter); });
  return make_layout(sizes, reads);
}

Blueprint draw_blueprint(const NetworkFactory& make_network, const TorchTask& task) {
  at::manual_seed(task.seed);
  const std::unique_ptr<Network> network = make_network();
  Blueprint blueprint{make_network, task, record_layout(*network, task), {}};
  FlatParameters flat(in_order(network->parameters(), blueprint.layout.order));
  blueprint.initial.assign(flat.values().begin(), flat.values().end());
  return blueprint;
}

class NetworkLearner final : public Learner {
 public:
  NetworkLearner(std::shared_ptr<const Blueprint> blueprint, std::size_t rank)
      : blueprint_(std::move(blueprint)),
        rank_(rank),
        sharding_{task().seed, task().train->size(), task().batch, task().workers},
        network_(blueprint_->make_network()),
        tensors_(in_order(network_->parameters(), blueprint_->layout.order)),
        flat_(tensors_),
        gate_(tensors_),
        gradient_hooks_(tensors_),
        features_(at::empty(batch_shape(task().batch, *task().train), at::kFloat)),
        labels_(at::empty({task().batch}, at::kLong)) {
    check(flat_.values().size() == blueprint_->initial.size(), "all networks of a run are alike");
    std::copy(blueprint_->initial.begin(), blueprint_->initial.end(), flat_.values().begin());
  }

  const std::vector<Layer>& layers() const override { return blueprint_->layout.layers; }
  std::span<float> parameters() override { return flat_.values(); }
  std::span<float> gradients() override { return flat_.gradients(); }
  void gradients_into(std::span<float> buffer) override { flat_.gradients_into(buffer); }

  double step(Iteration iteration, StepHooks& hooks) override {
    load_batch(iteration);
    LayerCalls calls(blueprint_->layout, hooks);
    const at::Tensor loss =
        gate_.run([&] { return at::cross_entropy_loss(network_->forward(features_), labels_); },
                  [&](std::size_t parameter) { calls.before_read(parameter); });
    calls.forward_done();
    // Every layer has been announced, so all gradients of the last step have been consumed.
    flat_.zero_gradients();
    gradient_hooks_.backward(loss, [&](std::size_t parameter) { calls.gradient_final(parameter); });
    calls.backward_done();
    return loss.item().toDouble();
  }

  std::optional<Evaluation> evaluate() override {
    const at::NoGradGuard no_grad;
    const DataSet& data = *task().test;
    network_->set_training(false);
    double loss = 0;
    std::int64_t right = 0;
    for (std::int64_t begin = 0; begin < data.size(); begin += kEvaluationBatch) {
      const std::int64_t end = std::min(begin + kEvaluationBatch, data.size());
      const at::Tensor labels = labels_of(data, begin, end);
      const at::Tensor scores = network_->forward(features_of(data, begin, end));
      loss += at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum).item().toDouble();
      right += scores.argmax(1).eq(labels).sum().item().toLong();
    }
    network_->set_training(true);
    const auto samples = static_cast<double>(data.size());
    return Evaluation{loss / samples, static_cast<double>(right) / samples};
  }

 private:
  const TorchTask& task() const { return blueprint_->task; }

  void load_batch(Iteration iteration) {
    const DataSet& data = *task().train;
    auto* features = features_.data_ptr<float>();
    auto* labels = labels_.data_ptr<std::int64_t>();
    for (const std::int64_t index : sharding_.batch_of(rank_, iteration)) {
      const std::span<const float> sample = data.sample(index);
      features = std::copy(sample.begin(), sample.end(), features);
      *labels++ = data.labels[static_cast<std::size_t>(index)];
    }
  }

  std::shared_ptr<const Blueprint> blueprint_;
  std::size_t rank_;
  Sharding sharding_;
  std::unique_ptr<Network> network_;
  std::vector<at::Tensor> tensors_;  // the network's parameters in the order of the layout
  FlatParameters flat_;
  ForwardGate gate_;
  GradientHooks gradient_hooks_;
  at::Tensor features_;
  at::Tensor labels_;
};

}  // namespace

LearnerFactory make_network_learners(const NetworkFactory& make_network, const TorchTask& task) {
  auto blueprint = std::make_shared<const Blueprint>(draw_blueprint(make_network, task));
  return
      [blueprint](std::size_t rank) { return std::make_unique<NetworkLearner>(blueprint, rank); };
}

}  // namespace sluice
