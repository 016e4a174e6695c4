#include "torch/script_network.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/file.h"

namespace sluice {
namespace {

using torch::jit::Module;

constexpr const char* kHowToExport = "export it with torch.jit.script(model).save(FILE)";

// What all networks of a file share.
struct Script {
  std::string bytes;
  SampleForm form;
  Loss loss = Loss::kCrossEntropy;
};

Module load(const Script& script) {
  std::istringstream stream(script.bytes);
  return torch::jit::load(stream, c10::Device(c10::kCPU));
}

std::vector<NamedTensor> weights_of(const Module& module) {
  std::vector<NamedTensor> weights;
  for (const auto& parameter : module.named_parameters()) {
    weights.push_back({parameter.name, parameter.value});
  }
  for (const auto& buffer : module.named_buffers()) {
    weights.push_back({buffer.name, buffer.value});
  }
  return weights;
}

std::vector<NamedTensor> trained_of(const Module& module) {
  std::vector<NamedTensor> trained;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value.requires_grad() &&
        seen.insert(parameter.value.unsafeGetTensorImpl()).second) {
      trained.push_back({parameter.name, parameter.value});
    }
  }
  return trained;
}

class ScriptNetwork final : public Network {
 public:
  explicit ScriptNetwork(std::shared_ptr<const Script> script)
      : script_(std::move(script)), module_(load(*script_)) {
    module_.train();
  }

  std::vector<NamedTensor> parameters() const override { return trained_of(module_); }

  std::vector<at::Tensor> state() const override {
    std::vector<at::Tensor> state;
    for (const NamedTensor& weight : weights_of(module_)) {
      if (!weight.tensor.requires_grad()) {
        state.push_back(weight.tensor);
      }
    }
    return state;
  }

  bool has_scores() const override { return script_->loss == Loss::kCrossEntropy; }

  at::Tensor forward(const at::Tensor& samples) override {
    return rows_of(run({samples}, "scores"), samples.size(0));
  }

  at::Tensor loss(const at::Tensor& samples, const at::Tensor& labels) override {
    switch (script_->loss) {
      case Loss::kCrossEntropy:
        return at::cross_entropy_loss(forward(samples), labels);
      case Loss::kMse:
        return squared_error(run({samples}, "outputs"), labels);
      case Loss::kModule:
        return single(run({samples, labels}, "its loss"));
    }
    fail_check("there is no such loss");
  }

  void set_training(bool on) override { module_.train(on); }

  void reseed(std::uint64_t seed) override { at::manual_seed(seed); }

  std::vector<NamedTensor> weights() const override { return weights_of(module_); }

  // The parameters of this module may be views of one long buffer, which would be written whole for
  // each of them. So they are copied into a module as it was read.
  std::optional<std::string> script() const override {
    const Module fresh = load(*script_);
    const std::vector<NamedTensor> from = weights();
    const std::vector<NamedTensor> to = weights_of(fresh);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].tensor.copy_(from[i].tensor);
    }
    std::ostringstream bytes;
    fresh.save(bytes);
    return bytes.str();
  }

 private:
  at::Tensor run(std::vector<c10::IValue> arguments, const char* expected) {
    // The optimiser would fuse operators, and the gate does not see which parameters a fused one
    // reads. It is a setting of the thread.
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    const c10::IValue result = module_.forward(std::move(arguments));
    if (!result.isTensor()) {
      throw std::invalid_argument(fmt::format("its forward() returns a {}; expected a tensor: {}",
                                              result.tagKind(), expected));
    }
    return result.toTensor();
  }

  // Other shapes would be broadcast, and the net would learn something else.
  static at::Tensor squared_error(const at::Tensor& outputs, const at::Tensor& targets) {
    if (outputs.sizes() != targets.sizes()) {
      throw std::invalid_argument(fmt::format(
          "its outputs are of shape ({}), and the targets of shape ({}); loss mse needs "
          "the same",
          fmt::join(outputs.sizes(), ", "), fmt::join(targets.sizes(), ", ")));
    }
    return at::mse_loss(outputs.to(at::kFloat), targets);
  }

  static at::Tensor single(const at::Tensor& loss) {
    if (loss.numel() != 1) {
      throw std::invalid_argument(
          fmt::format("its forward(samples, targets) returns a tensor of shape ({}); loss module "
                      "expects a single number, the mean loss of the batch",
                      fmt::join(loss.sizes(), ", ")));
    }
    return loss.to(at::kFloat).squeeze();
  }

  at::Tensor rows_of(const at::Tensor& scores, std::int64_t samples) const {
    const at::Tensor rows = scores.dim() > 2 ? scores.flatten(0, -2) : scores;
    if (rows.dim() != 2 || rows.size(0) % samples != 0 || rows.size(1) < script_->form.classes) {
      throw std::invalid_argument(fmt::format(
          "its scores for a batch of {} are of shape ({}); expected a row for every label, and a "
          "column for each of {} classes",
          samples, fmt::join(scores.sizes(), ", "), script_->form.classes));
    }
    return rows;
  }

  std::shared_ptr<const Script> script_;
  Module module_;
};

Result<void> check_module(const Module& module) {
  if (!module.find_method("forward")) {
    return Error("the module has no forward()");
  }
  const std::vector<NamedTensor> trained = trained_of(module);
  if (trained.empty()) {
    return Error(
        "the module has no parameters that require a gradient; was it frozen? Export it in "
        "the state in which it is trained");
  }
  for (const NamedTensor& parameter : trained) {
    if (parameter.tensor.scalar_type() != at::kFloat) {
      return Error(
          fmt::format("parameter {} is of type {}, expected Float; call .float() on the "
                      "module before you export it",
                      parameter.name, c10::toString(parameter.tensor.scalar_type())));
    }
  }
  return {};
}

}  // namespace

std::string gist_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::istringstream text(of_torch == nullptr ? error.what() : of_torch->what_without_backtrace());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      lines.push_back(line);
    }
  }
  // If TorchScript shows a traceback, the reason comes last.
  const bool traced = lines.size() > 1 && lines[1].starts_with("Traceback of TorchScript");
  return lines.empty() ? "no reason" : traced ? lines.back() : lines.front();
}

// Whether the targets of the data are for this loss.
Result<void> check_targets(Loss loss, const SampleForm& form) {
  const bool real = form.classes == 0;
  if (loss == Loss::kMse && !real) {
    return Error(
        "loss mse: the data have class labels, expected real numbers as targets; use --data arrays "
        "with targets of a floating-point type, or another --loss");
  }
  if (loss == Loss::kCrossEntropy && real) {
    return Error(
        "loss cross-entropy: the targets of the data are real numbers, expected class labels; use "
        "--loss mse or module, or save the labels as numpy.int64");
  }
  return {};
}

Result<NetworkFactory> read_script(const std::string& path, const SampleForm& form, Loss loss) {
  if (const auto fits = check_targets(loss, form); !fits) {
    return fits.error();
  }
  auto bytes = read_file(path);
  if (!bytes) {
    return bytes.error();
  }
  const auto script = std::make_shared<const Script>(Script{*std::move(bytes), form, loss});
  try {
    if (const auto valid = check_module(load(*script)); !valid) {
      return valid.error().within(path);
    }
  } catch (const std::exception& e) {
    return Error(
        fmt::format("{}: is not a TorchScript file: {}; {}", path, gist_of(e), kHowToExport));
  }
  return NetworkFactory([script] { return std::make_unique<ScriptNetwork>(script); });
}

}  // namespace sluice
