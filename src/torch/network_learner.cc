#include "torch/network_learner.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "torch/autocast.h"
#include "torch/device.h"
#include "torch/device_copies.h"
#include "torch/flat_parameters.h"
#include "torch/forward_gate.h"
#include "torch/gradient_hooks.h"
#include "torch/layer_calls.h"
#include "torch/layout.h"
#include "torch/learner_state.h"
#include "torch/network_setup.h"
#include "torch/running_statistics.h"
#include "torch/saved_network.h"

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

// Two samples read the parameters in the same order as many do.
constexpr std::int64_t kSamplesThatTell = 2;

Blueprint draw_blueprint(const NetworkFactory& make_network, const TorchTask& task) {
  at::manual_seed(task.seed);
  const std::unique_ptr<Network> network = make_network();
  std::vector<at::Tensor> state;
  for (const at::Tensor& tensor : network->state()) {
    state.push_back(tensor.clone());
  }
  const Placement placement{device_of(task.device, 0)};
  move_to(*network, placement.device);
  Batch batch;
  batches_in_order(task.train, std::min(task.batch, kSamplesThatTell)).load(0, batch);
  const Layout layout =
      record_layout(*network, samples_of(batch, placement), labels_of(batch, placement));
  const FlatParameters flat(parameters_in_order(*network, layout), c10::kCPU);
  const std::span<const float> values = span_of(flat.values());
  return {make_network, task, layout, {values.begin(), values.end()}, state};
}

class NetworkLearner final : public Learner {
 public:
  NetworkLearner(std::shared_ptr<const Blueprint> blueprint, std::size_t rank)
      : blueprint_(std::move(blueprint)),
        rank_(rank),
        batches_(task().loader->open(batches_of(task().train, task().sharding(), rank))),
        placement_{device_of(task().device, rank), task().channels_last},
        network_(make_network_on(placement_.device)),
        tensors_(parameters_in_order(*network_, blueprint_->layout)),
        flat_(tensors_, placement_.device),
        gate_(tensors_) {
    if (!placement_.device.is_cpu()) {
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
  bool gradient_is_finite(LayerId layer) override {
    return copies_ ? copies_->gradient_is_finite(layer) : Learner::gradient_is_finite(layer);
  }
  bool can_update() const override { return copies_.has_value(); }
  void update_with(const UpdateRule& rule, const BatchShare& share) override {
    check(can_update(), "a network on the host leaves updates to others");
    copies_->update_with(rule, share);
  }
  void pack_with(const Strategy& strategy, const DeepGradientSender& sender,
                 const ChunkMap& chunks) override {
    check(can_update(), "a network on the host leaves packing to others");
    copies_->pack_with(strategy, sender, chunks);
  }
  void find_right_factors(std::span<const Range> matrices) override {
    copies_.value().find_right_factors(matrices);
  }
  void step_locally(const UpdateRule& rule, LayerTurns turns) override {
    check(can_update(), "a network on the host leaves local steps to others");
    copies_->step_locally(rule, std::move(turns));
  }
  void settle(Iteration iteration) override {
    if (copies_) {
      copies_->settle(iteration);
    }
  }
  bool times_itself() const override { return copies_ && DeviceCopies::has_times(); }

  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    const c10::StreamGuard on(stream());
    Batch& batch = batches_->get(iteration);
    network_->reseed(augmentation_seed_of(iteration));
    LayerCalls calls(blueprint_->layout, copies_ ? copies_->begin_step(iteration, hooks) : hooks);
    const std::vector<MicroBatch> parts = micro_batches_of(batch, task().accumulate);
    const double weight = weight_of(iteration);
    at::Tensor total;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const at::Tensor loss =
          p == 0 ? first_loss(batch, parts[p], calls) : loss_of(batch, parts[p]);
      const double counts = weight * parts[p].share;
      const at::Tensor counted = counts == 1 ? loss : loss.mul(counts);
      total = p == 0 ? counted.detach() : total.add(counted.detach());
      if (p + 1 < parts.size()) {
        gradient_hooks_->backward(counted, [](std::size_t /*parameter*/) {});
        continue;
      }
      if (copies_) {
        copies_->bring_loss(total);
      }
      calls.forward_done();
      gradient_hooks_->backward(counted,
                                [&](std::size_t parameter) { calls.gradient_final(parameter); });
      calls.backward_done();
    }
    if (!copies_) {
      return total.item().toDouble();
    }
    copies_->end_step();
    return copies_->loss();
  }

  std::optional<Evaluation> evaluate() override {
    const at::NoGradGuard no_grad;
    const c10::StreamGuard on(stream());
    if (copies_) {
      copies_->bring_all();
    }
    const BatchSequence tests = batches_in_order(task().test, task().batch);
    const std::unique_ptr<BatchStream> batches = task().loader->open(tests);
    network_->set_training(false);
    if (!network_->has_scores()) {
      const double loss = mean_loss(tests, *batches);
      network_->set_training(true);
      return Evaluation{.loss = loss};
    }
    double loss = 0;
    std::int64_t right = 0;
    std::int64_t asked = 0;
    for (std::int64_t i = 0; i < tests.size; ++i) {
      Batch& batch = batches->get(i);
      const at::Tensor labels = labels_of(batch, placement_);
      const at::Tensor scores = scores_of(samples_of(batch, placement_)).to(at::kFloat);
      loss += at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum).item().toDouble();
      right += scores.argmax(1).eq(labels).sum().item().toLong();
      asked += labels.ne(kNoLabel).sum().item().toLong();
    }
    network_->set_training(true);
    const auto count = static_cast<double>(asked);
    return Evaluation{loss / count, static_cast<double>(right) / count};
  }

  void estimate_statistics() override {
    const at::NoGradGuard no_grad;
    const c10::StreamGuard on(stream());
    if (copies_) {
      copies_->bring_all();
    }
    const BatchSequence training = batches_of(task().train, task().sharding(), rank_);
    Batch batch;
    sluice::estimate_statistics(*network_, [&](Iteration i) {
      training.load(i, batch);
      network_->reseed(augmentation_seed_of(i));
      const MicroBatch part = micro_batches_of(batch, task().accumulate).front();
      if (network_->has_scores()) {
        scores_of(samples_of(batch, part, placement_));
      } else {
        loss_of(batch, part);
      }
    });
  }

  std::vector<TensorCopy> remembered() override {
    const c10::StreamGuard on(stream());
    return copies_of(state());
  }

  Result<void> recall(std::span<const StoredTensor> saved) override {
    const c10::StreamGuard on(stream());
    return fill_from(saved, state());
  }

  Result<void> save(const std::filesystem::path& folder) override {
    const c10::StreamGuard on(stream());
    if (copies_) {
      copies_->bring_all();
    }
    return save_network(*network_, task(), folder);
  }

 private:
  const TorchTask& task() const { return blueprint_->task; }

  // All that steps change besides parameters.
  std::vector<at::Tensor> state() const {
    std::vector<at::Tensor> all = network_->state();
    if (copies_) {
      std::ranges::move(copies_->state(), std::back_inserter(all));
    }
    return all;
  }

  at::Tensor loss_of(Batch& batch, const MicroBatch& part) {
    const auto samples = input([&] { return samples_of(batch, part, placement_); });
    const auto labels = input([&] { return labels_of(batch, part, placement_); });
    const Autocast autocast(task().precision, placement_.device.type());
    return network_->loss(samples, labels);
  }

  template <class Make>
  at::Tensor input(const Make& make) const {
    return copies_ ? copies_->input(make) : make();
  }

  // Over all samples, of a network without scores.
  double mean_loss(const BatchSequence& sequence, BatchStream& batches) {
    double sum = 0;
    std::int64_t samples = 0;
    for (std::int64_t i = 0; i < sequence.size; ++i) {
      Batch& batch = batches.get(i);
      const MicroBatch whole = micro_batches_of(batch, 1).front();
      sum += loss_of(batch, whole).item().toDouble() * static_cast<double>(whole.samples.size());
      samples += whole.samples.size();
    }
    return sum / static_cast<double>(samples);
  }

  at::Tensor scores_of(const at::Tensor& samples) {
    const Autocast autocast(task().precision, placement_.device.type());
    return network_->forward(samples);
  }

  // The forward pass that waits for its parameters; makes room for the gradients.
  at::Tensor first_loss(Batch& batch, const MicroBatch& part, LayerCalls& calls) {
    at::Tensor loss = gate_.run([&] { return loss_of(batch, part); },
                                [&](std::size_t parameter) { calls.before_read(parameter); });
    calls.all_read();
    // Every layer has been released, so all gradients of the last step have been consumed.
    flat_.zero_gradients();
    return loss;
  }

  std::unique_ptr<Network> make_network_on(c10::Device device) const {
    std::unique_ptr<Network> network = blueprint_->make_network();
    move_to(*network, device);
    return network;
  }

  // All work on the network belongs on this stream.
  c10::Stream stream() const {
    return copies_ ? copies_->compute_stream()
                   : c10::Stream(c10::Stream::DEFAULT, placement_.device);
  }

  double weight_of(Iteration iteration) const {
    return task().joins_batches ? task().sharding().weight_of(rank_, iteration) : 1;
  }

  // Every step of every worker has a different seed.
  std::uint64_t augmentation_seed_of(Iteration iteration) const {
    const std::uint64_t step = static_cast<std::uint64_t>(iteration) * task().workers + rank_;
    return Random(mix(task().seed), step).next();
  }

  std::shared_ptr<const Blueprint> blueprint_;
  std::size_t rank_;
  std::unique_ptr<BatchStream> batches_;
  Placement placement_;
  std::unique_ptr<Network> network_;
  std::vector<at::Tensor> tensors_;  // the network's parameters in the order of the layout
  FlatParameters flat_;
  ForwardGate gate_;
  std::optional<DeviceCopies> copies_;           // unless the device is the host
  std::optional<GradientHooks> gradient_hooks_;  // made on the network's stream
};

}  // namespace

LearnerFactory make_network_learners(const NetworkFactory& make_network, const TorchTask& task) {
  auto blueprint = std::make_shared<const Blueprint>(draw_blueprint(make_network, task));
  return
      [blueprint](std::size_t rank) { return std::make_unique<NetworkLearner>(blueprint, rank); };
}

}  // namespace sluice
