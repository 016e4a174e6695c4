#include "torch/script_network.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
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

#include "base/file.h"

namespace sluice {
namespace {

using torch::jit::Module;

constexpr const char* kHowToExport = "export it with torch.jit.script(model).save(FILE)";

// What all networks of a file share.
struct Script {
  std::string bytes;
  SampleForm form;
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

  at::Tensor forward(const at::Tensor& samples) override {
    // The optimiser would fuse operators, and the gate does not see which parameters a fused one
    // reads. It is a setting of the thread.
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    const c10::IValue result = module_.forward({samples});
    if (!result.isTensor()) {
      throw std::invalid_argument(
          fmt::format("its forward() returns a {}; expected a tensor of scores", result.tagKind()));
    }
    return rows_of(result.toTensor(), samples.size(0));
  }

  at::Tensor loss(const at::Tensor& samples, const at::Tensor& labels) override {
    return at::cross_entropy_loss(forward(samples), labels);
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

Result<NetworkFactory> read_script(const std::string& path, const SampleForm& form) {
  auto bytes = read_file(path);
  if (!bytes) {
    return bytes.error();
  }
  const auto script = std::make_shared<const Script>(Script{*std::move(bytes), form});
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
