#include "api/loop_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "api/local_steps_model.h"
#include "api/loop_strategy.h"
#include "api/summed_model.h"
#include "nodes/presets.h"
#include "torch/flat_parameters.h"
#include "torch/layer_calls.h"
#include "torch/network_setup.h"

namespace sluice {
namespace {

// Not all versions of LibTorch restore the learning rates.
constexpr const char* kRates = "sluice_rates";

// Gives a clear error before LibTorch gives its own.
void check_loss(const at::Tensor& loss) {
  if (!loss.defined()) {
    throw std::invalid_argument("the closure of step() returned no tensor: return the loss");
  }
  if (loss.numel() != 1) {
    throw std::invalid_argument(fmt::format(
        "the closure of step() returned a tensor of shape [{}], expected a single number: return "
        "the mean over the batch, such as loss.mean()",
        fmt::join(loss.sizes().vec(), ", ")));
  }
  if (!loss.requires_grad()) {
    throw std::invalid_argument(
        "the closure of step() returned a loss without a gradient: compute it from the attached "
        "parameters, without NoGradGuard and detach()");
  }
}

void check_optimizer(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& attached) {
  std::unordered_set<const c10::TensorImpl*> known;
  for (const at::Tensor& tensor : attached) {
    known.insert(tensor.unsafeGetTensorImpl());
  }
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& tensor : group.params()) {
      if (tensor.requires_grad() && !known.contains(tensor.unsafeGetTensorImpl())) {
        throw std::invalid_argument(fmt::format(
            "the optimizer has a parameter of shape [{}] that is not attached: attach all "
            "parameters that it updates",
            fmt::join(tensor.sizes().vec(), ", ")));
      }
    }
  }
}

std::vector<std::string> layer_names(const Layout& layout) {
  std::vector<std::string> names;
  for (const Layer& layer : layout.layers) {
    names.push_back(layer.name);
  }
  return names;
}

std::vector<std::int64_t> layer_sizes(const Layout& layout) {
  std::vector<std::int64_t> sizes;
  for (const Layer& layer : layout.layers) {
    sizes.push_back(layer.range.size());
  }
  return sizes;
}

std::vector<std::int64_t> offsets_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> offsets;
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    offsets.push_back(offset);
    offset += tensor.numel();
  }
  return offsets;
}

std::vector<std::vector<std::size_t>> indices_by_layer(const Layout& layout) {
  std::vector<std::vector<std::size_t>> indices(layout.layers.size());
  for (std::size_t p = 0; p < layout.layer_of.size(); ++p) {
    indices[layout.layer_of[p].index()].push_back(p);
  }
  return indices;
}

// Collective. Returns the values, one behind the other.
at::Tensor begin_alike(Participant& participant, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) {
    parts.push_back(tensor.detach().flatten().cpu());
  }
  at::Tensor all = at::cat(parts);
  participant.broadcast(std::as_writable_bytes(span_of(all)), 0);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(all.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
  return all;
}

GradientExchange::Options options_of(const LoopOptions& options, Participant& participant,
                                     const std::vector<at::Tensor>& tensors) {
  GradientExchange::Options all = exchange_options(options);
  all.begin_with = [&](std::span<float> parameters) {
    std::ranges::copy(span_of(begin_alike(participant, tensors)), parameters.begin());
  };
  return all;
}

}  // namespace

ExchangedModel::ExchangedModel(Participant& participant, const std::vector<NamedTensor>& parameters,
                               torch::optim::Optimizer& optimizer,
                               const std::function<void()>& forward, const LoopOptions& options)
    : participant_(participant),
      parameters_(parameters),
      optimizer_(optimizer),
      stop_on_nonfinite_(options.stop_on_nonfinite),
      layout_(record_layout(parameters, forward)),
      tensors_(parameters_in_order(parameters, layout_)),
      offsets_(offsets_of(tensors_)),
      of_layer_(indices_by_layer(layout_)),
      exchange_(participant, options_of(options, participant, tensors_), layer_names(layout_),
                layer_sizes(layout_)),
      gate_(tensors_),
      gradient_hooks_(tensors_, GradientHooks::Elsewhere::kIgnored) {
  check_optimizer(optimizer, tensors_);
  if (!exchange_.steps_locally()) {
    begin_alike(participant, tensors_);
  }
}

double ExchangedModel::step(const Loss& loss) {
  const double value = pass(loss, true);
  end_step(value);
  accumulating_ = false;
  ++metrics_.steps;
  return value;
}

double ExchangedModel::accumulate(const Loss& loss) {
  const double value = pass(loss, false);
  accumulating_ = true;
  return value;
}

double ExchangedModel::pass(const Loss& closure, bool sends) {
  if (!accumulating_) {
    clear_gradients();  // a backward pass of another model may have left some
  }
  LayerCalls calls(layout_, *this);
  const at::Tensor loss =
      gate_.run(closure, [&](std::size_t parameter) { calls.before_read(parameter); });
  check_loss(loss);
  calls.forward_done();
  gradient_hooks_.backward(loss, [&](std::size_t parameter) {
    if (sends) {
      calls.gradient_final(parameter);
    }
  });
  if (sends) {
    calls.backward_done();
  }
  return loss.item().toDouble();
}

at::Tensor ExchangedModel::optimizer_state() const {
  torch::serialize::OutputArchive archive;
  optimizer_.save(archive);
  std::vector<double> rates;
  for (const torch::optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
    rates.push_back(group.options().get_lr());
  }
  archive.write(kRates, at::tensor(rates, at::kDouble));
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = stream.str();
  const at::Tensor state = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  return state;
}

void ExchangedModel::set_optimizer_state(const at::Tensor& bytes) {
  std::istringstream stream(
      std::string(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()));
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  optimizer_.load(archive);
  at::Tensor rates;
  archive.read(kRates, rates);
  auto& groups = optimizer_.param_groups();
  for (std::size_t g = 0; g < groups.size() && static_cast<std::int64_t>(g) < rates.numel(); ++g) {
    groups[g].options().set_lr(rates[static_cast<std::int64_t>(g)].item().toDouble());
  }
}

bool ExchangedModel::before_layer(LayerId layer) {
  exchange_.enter(layer.index());
  return bring_up_to_date(layer.index());
}

void ExchangedModel::wait_for(std::size_t layer) {
  if (exchange_.is_here(layer)) {
    return exchange_.wait(layer);
  }
  const auto begin = std::chrono::steady_clock::now();
  exchange_.wait(layer);
  ++metrics_.waits;
  metrics_.waited_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void ExchangedModel::gradient_ready(LayerId layer) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  if (on_gradients_) {
    std::vector<at::Tensor> gradients;
    for (const std::size_t p : of_layer(layer.index())) {
      gradients.push_back(tensors_[p].grad());
    }
    on_gradients_(name_of_layer(layer.index()), gradients);
  }
  send(layer);
}

void ExchangedModel::check_finite(std::size_t layer, const std::function<bool()>& is_finite) const {
  if (stop_on_nonfinite_ && !is_finite()) {
    throw std::runtime_error(fmt::format(
        "the gradient of layer {} is not finite in step {} of rank {}; try a lower learning rate, "
        "or continue anyway with stop_on_nonfinite = false",
        name_of_layer(layer), metrics_.steps, participant_.rank()));
  }
}

void ExchangedModel::clear_gradients() {
  for (at::Tensor& tensor : tensors_) {
    tensor.mutable_grad().reset();
  }
}

at::Tensor ExchangedModel::part_of(std::span<float> buffer, std::size_t parameter) const {
  return at::from_blob(buffer.data() + offsets_[parameter], tensors_[parameter].sizes(),
                       at::kFloat);
}

std::unique_ptr<ExchangedModel> exchanged_model(Participant& participant,
                                                const std::vector<NamedTensor>& parameters,
                                                torch::optim::Optimizer& optimizer,
                                                const std::function<void()>& forward,
                                                const LoopOptions& options) {
  const Preset* preset = find_preset(options.preset);
  if (preset != nullptr && preset->strategy.algorithm == Algorithm::kLocal) {
    return std::make_unique<LocalStepsModel>(participant, parameters, optimizer, forward, options);
  }
  return std::make_unique<SummedModel>(participant, parameters, optimizer, forward, options);
}

}  // namespace sluice
