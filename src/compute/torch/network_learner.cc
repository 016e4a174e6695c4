#include "compute/torch/network_learner.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "compute/data/sharding.h"
#include "compute/torch/device.h"
#include "compute/torch/device_copies.h"
#include "compute/torch/flat_parameters.h"
#include "compute/torch/forward_gate.h"
#include "compute/torch/gradient_hooks.h"
#include "compute/torch/layer_calls.h"
#include "compute/torch/layout.h"

namespace sluice {
namespace {

// What all learners of a run share.
struct Blueprint {
  NetworkFactory make_network;
  TorchTask task;
  Layout layout;
  std::vector<float> initial;     // in the order of the layout
  std::vector<at::Tensor> state;  // of a network at the start
};

std::vector<at::Tensor> in_order(const std::vector<NamedTensor>& parameters,
                                 const std::vector<std::size_t>& order) {
  std::vector<at::Tensor> tensors;
  for (const std::size_t index : order) {
    tensors.push_back(parameters[index].tensor);
  }
  return tensors;
}

// A batch where the network is; in the host's memory, views of it.
at::Tensor samples_of(Batch& batch, c10::Device device) {
  return (batch.words.empty() ? at::from_blob(batch.features.data(), batch.shape, at::kFloat)
                              : at::from_blob(batch.words.data(), batch.shape, at::kLong))
      .to(device);
}
at::Tensor answers_of(Batch& batch, c10::Device device) {
  return at::from_blob(batch.answers.data(), {static_cast<std::int64_t>(batch.answers.size())},
                       at::kLong)
      .to(device);
}

void move_to(const Network& network, c10::Device device) {
  for (at::Tensor tensor : network.state()) {
    tensor.set_data(tensor.to(device));
  }
  for (const NamedTensor& parameter : network.parameters()) {
    parameter.tensor.set_data(parameter.tensor.data().to(device));
  }
}

void load_run(const Samples& samples, std::int64_t begin, std::int64_t end, Batch& batch) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  samples.load(indices, batch);
}

Layout record_layout(Network& network, c10::Device device, const TorchTask& task) {
  std::vector<ParameterSize> sizes;
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& parameter : network.parameters()) {
    sizes.push_back({parameter.name, parameter.tensor.numel()});
    tensors.push_back(parameter.tensor);
  }
  const at::NoGradGuard no_grad;
  Batch batch;
  load_run(*task.train, 0, task.batch, batch);
  std::vector<std::size_t> reads;
  ForwardGate(tensors).run(
      [&] { return network.loss(samples_of(batch, device), answers_of(batch, device)); },
      [&](std::size_t parameter) { reads.push_back(parameter); });
  return make_layout(sizes, reads);
}

Blueprint draw_blueprint(const NetworkFactory& make_network, const TorchTask& task) {
  at::manual_seed(task.seed);
  const std::unique_ptr<Network> network = make_network();
  std::vector<at::Tensor> state;
  for (const at::Tensor& tensor : network->state()) {
    state.push_back(tensor.clone());
  }
  const c10::Device device = device_of(task.device, 0);
  move_to(*network, device);
  Blueprint blueprint{
      make_network, task, record_layout(*network, device, task), {}, std::move(state)};
  const FlatParameters flat(in_order(network->parameters(), blueprint.layout.order), c10::kCPU);
  const std::span<const float> values = span_of(flat.values());
  blueprint.initial.assign(values.begin(), values.end());
  return blueprint;
}

class NetworkLearner final : public Learner {
 public:
  NetworkLearner(std::shared_ptr<const Blueprint> blueprint, std::size_t rank)
      : blueprint_(std::move(blueprint)),
        rank_(rank),
        sharding_{task().seed, task().train->size(), task().batch, task().workers},
        device_(device_of(task().device, rank)),
        network_(make_network_on(device_)),
        tensors_(in_order(network_->parameters(), blueprint_->layout.order)),
        flat_(tensors_, device_),
        gate_(tensors_) {
    if (!device_.is_cpu()) {
      copies_.emplace(flat_, layers(), task().sleeper);
    }
    const c10::StreamGuard on(stream());
    gradient_hooks_.emplace(tensors_);
    check(parameters().size() == blueprint_->initial.size(), "all networks of a run are alike");
    std::copy(blueprint_->initial.begin(), blueprint_->initial.end(), parameters().begin());
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor> state = network_->state();
    for (std::size_t i = 0; i < state.size(); ++i) {
      state[i].copy_(blueprint_->state[i]);
    }
  }

  const std::vector<Layer>& layers() const override { return blueprint_->layout.layers; }
  std::span<float> parameters() override {
    return copies_ ? copies_->parameters() : span_of(flat_.values());
  }
  std::span<float> gradients() override {
    return copies_ ? copies_->gradients() : span_of(flat_.gradients());
  }
  std::shared_ptr<float[]> further_gradients() override {
    return copies_ ? copies_->further_gradients() : Learner::further_gradients();
  }
  void gradients_into(std::span<float> buffer) override {
    copies_ ? copies_->gradients_into(buffer) : flat_.gradients_into(buffer);
  }
  bool times_itself() const override { return copies_ && DeviceCopies::has_times(); }

  double step(Iteration iteration, StepHooks& hooks) override {
    const c10::StreamGuard on(stream());
    task().train->load(sharding_.batch_of(rank_, iteration), batch_);
    network_->reseed(chance_of(iteration));
    LayerCalls calls(blueprint_->layout, copies_ ? copies_->begin_step(hooks) : hooks);
    const at::Tensor loss = gate_.run(
        [&] { return network_->loss(samples_of(batch_, device_), answers_of(batch_, device_)); },
        [&](std::size_t parameter) { calls.before_read(parameter); });
    calls.forward_done();
    // Every layer has been announced, so all gradients of the last step have been consumed.
    flat_.zero_gradients();
    gradient_hooks_->backward(loss,
                              [&](std::size_t parameter) { calls.gradient_final(parameter); });
    calls.backward_done();
    if (copies_) {
      copies_->end_step();
    }
    return loss.item().toDouble();
  }

  std::optional<Evaluation> evaluate() override {
    const at::NoGradGuard no_grad;
    const c10::StreamGuard on(stream());
    if (copies_) {
      copies_->bring_all();
    }
    const Samples& data = *task().test;
    network_->set_training(false);
    double loss = 0;
    std::int64_t right = 0;
    std::int64_t asked = 0;
    Batch batch;
    for (std::int64_t begin = 0; begin < data.size(); begin += task().batch) {
      load_run(data, begin, std::min(begin + task().batch, data.size()), batch);
      const at::Tensor answers = answers_of(batch, device_);
      const at::Tensor scores = network_->forward(samples_of(batch, device_));
      loss += at::cross_entropy_loss(scores, answers, {}, at::Reduction::Sum).item().toDouble();
      right += scores.argmax(1).eq(answers).sum().item().toLong();
      asked += answers.ne(kNoAnswer).sum().item().toLong();
    }
    network_->set_training(true);
    const auto count = static_cast<double>(asked);
    return Evaluation{loss / count, static_cast<double>(right) / count};
  }

 private:
  const TorchTask& task() const { return blueprint_->task; }

  std::unique_ptr<Network> make_network_on(c10::Device device) const {
    std::unique_ptr<Network> network = blueprint_->make_network();
    move_to(*network, device);
    return network;
  }

  // Where all work on the network belongs.
  c10::Stream stream() const {
    return copies_ ? copies_->compute_stream() : c10::Stream(c10::Stream::DEFAULT, device_);
  }

  // Every step of every worker has a seed of its own.
  std::uint64_t chance_of(Iteration iteration) const {
    const std::uint64_t step = static_cast<std::uint64_t>(iteration) * task().workers + rank_;
    return Random(mix(task().seed), step).next();
  }

  std::shared_ptr<const Blueprint> blueprint_;
  std::size_t rank_;
  Sharding sharding_;
  c10::Device device_;
  std::unique_ptr<Network> network_;
  std::vector<at::Tensor> tensors_;  // the network's parameters in the order of the layout
  FlatParameters flat_;
  ForwardGate gate_;
  std::optional<DeviceCopies> copies_;           // if the device is not the host
  std::optional<GradientHooks> gradient_hooks_;  // made on the network's stream
  Batch batch_;
};

}  // namespace

LearnerFactory make_network_learners(const NetworkFactory& make_network, const TorchTask& task) {
  auto blueprint = std::make_shared<const Blueprint>(draw_blueprint(make_network, task));
  return
      [blueprint](std::size_t rank) { return std::make_unique<NetworkLearner>(blueprint, rank); };
}

}  // namespace sluice
