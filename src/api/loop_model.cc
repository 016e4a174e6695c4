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

#include "api/loop_strategy.h"
#include "base/finite.h"
#include "drivers/processes/launch.h"
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
      of_layer_(layout_.layers.size()),
      exchange_(participant, exchange_options(options), layer_names(layout_), layer_sizes(layout_)),
      gate_(tensors_),
      gradient_hooks_(tensors_, GradientHooks::Elsewhere::kIgnored),
      due_(layout_.layers.size(), false) {
  check_optimizer(optimizer, tensors_);
  std::int64_t offset = 0;
  for (std::size_t p = 0; p < tensors_.size(); ++p) {
    of_layer_[layout_.layer_of[p].index()].push_back(p);
    offsets_.push_back(offset);
    offset += tensors_[p].numel();
  }
  begin_alike();
}

void ExchangedModel::begin_alike() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors_) {
    parts.push_back(tensor.detach().flatten().cpu());
  }
  const at::Tensor all = at::cat(parts);
  participant_.broadcast(std::as_writable_bytes(span_of(all)), 0);
  for (std::size_t p = 0; p < tensors_.size(); ++p) {
    tensors_[p].copy_(all.narrow(0, offsets_[p], tensors_[p].numel()).view(tensors_[p].sizes()));
  }
}

double ExchangedModel::step(const Loss& loss) {
  const double value = pass(loss, true);
  exchange_.end_step(value);
  clear_gradients();
  accumulating_ = false;
  due_.assign(due_.size(), true);
  at_step_ = hyperparameters();
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

void ExchangedModel::wait() {
  for (std::size_t layer = 0; layer < due_.size(); ++layer) {
    bring_up_to_date(layer);
  }
}

bool ExchangedModel::before_layer(LayerId layer) {
  exchange_.enter(layer.index());
  return bring_up_to_date(layer.index());
}

bool ExchangedModel::bring_up_to_date(std::size_t layer) {
  if (!due_[layer]) {
    return true;
  }
  const bool at_once = exchange_.is_here(layer);
  if (!at_once) {
    const auto begin = std::chrono::steady_clock::now();
    exchange_.wait(layer);
    ++metrics_.waits;
    metrics_.waited_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  update_from(layer);
  return at_once;
}

void ExchangedModel::update_from(std::size_t layer) {
  std::vector<std::size_t> here;
  for (std::size_t l = 0; l < due_.size(); ++l) {
    if (due_[l] && (l == layer || exchange_.is_here(l))) {
      exchange_.wait(l);
      due_[l] = false;
      here.push_back(l);
    }
  }
  update(here);
}

// An optimizer passes over parameters without a gradient, so it updates these layers only.
void ExchangedModel::update(const std::vector<std::size_t>& layers) {
  const at::DisableRecordFunctionGuard unwatched;
  for (const std::size_t layer : layers) {
    for (const std::size_t p : of_layer_[layer]) {
      tensors_[p].mutable_grad() = sum_of(p).to(tensors_[p].device());
    }
  }
  Hyperparameters own = exchange_hyperparameters(std::move(at_step_));
  optimizer_.step();
  at_step_ = exchange_hyperparameters(std::move(own));
  clear_gradients();
}

void ExchangedModel::gradient_ready(LayerId layer) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  const std::vector<std::size_t>& parameters = of_layer_[layer.index()];
  const Layer& of = layout_.layers[layer.index()];
  if (on_gradients_) {
    std::vector<at::Tensor> gradients;
    for (const std::size_t p : parameters) {
      gradients.push_back(tensors_[p].grad());
    }
    on_gradients_(of.name, gradients);
  }
  for (const std::size_t p : parameters) {
    const at::Tensor target = sum_of(p);
    const at::Tensor& gradient = tensors_[p].grad();
    if (gradient.defined()) {
      target.copy_(gradient);
      target.div_(static_cast<double>(participant_.size()));
    } else {
      target.zero_();
    }
  }
  const auto sent = exchange_.gradients().subspan(static_cast<std::size_t>(of.range.begin),
                                                  static_cast<std::size_t>(of.range.size()));
  if (stop_on_nonfinite_ && !all_finite(sent)) {
    throw std::runtime_error(fmt::format(
        "the gradient of layer {} is not finite in step {} of rank {}; try a lower learning rate, "
        "or continue anyway with stop_on_nonfinite = false",
        of.name, metrics_.steps, participant_.rank()));
  }
  exchange_.gradient_ready(layer.index());
}

void ExchangedModel::clear_gradients() {
  for (at::Tensor& tensor : tensors_) {
    tensor.mutable_grad().reset();
  }
}

at::Tensor ExchangedModel::sum_of(std::size_t parameter) {
  return at::from_blob(exchange_.gradients().data() + offsets_[parameter],
                       tensors_[parameter].sizes(), at::kFloat);
}

ExchangedModel::Hyperparameters ExchangedModel::hyperparameters() const {
  Hyperparameters all;
  for (const torch::optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
    all.push_back(group.options().clone());
  }
  return all;
}

ExchangedModel::Hyperparameters ExchangedModel::exchange_hyperparameters(Hyperparameters with) {
  Hyperparameters own = hyperparameters();
  for (std::size_t g = 0; g < with.size(); ++g) {
    optimizer_.param_groups()[g].set_options(std::move(with[g]));
  }
  return own;
}

}  // namespace sluice
