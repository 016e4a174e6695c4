#include "torch/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <stdexcept>
#include <utility>

namespace sluice {

using torch::autograd::variable_list;

// Runs after the node that adds to a parameter's gradient. Autograd runs that node once per pass,
// after all uses of the parameter.
class GradientHooks::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(const GradientHooks& hooks, std::size_t parameter) : hooks_(hooks), parameter_(parameter) {}

  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    if (hooks_.on_final_ != nullptr) {
      (*hooks_.on_final_)(parameter_);
    } else if (hooks_.elsewhere_ == Elsewhere::kRefused) {
      throw std::logic_error(
          "backward() was called on parameters that Sluice trains, outside of its own backward "
          "pass");
    }
    return outputs;
  }

 private:
  const GradientHooks& hooks_;
  std::size_t parameter_;
};

// The callback belongs to the caller, so it is dropped when the pass ends, also by an exception.
class GradientHooks::Pass {
 public:
  Pass(const OnFinal*& place, const OnFinal& on_final) : place_(place) { place_ = &on_final; }
  ~Pass() { place_ = nullptr; }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

 private:
  const OnFinal*& place_;
};

struct GradientHooks::Registration {
  // The parameter holds its node only weakly. The type differs between versions of LibTorch.
  decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>())) node;
  std::uintptr_t key;
};

GradientHooks::GradientHooks(const std::vector<at::Tensor>& parameters, Elsewhere elsewhere)
    : elsewhere_(elsewhere) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto node = torch::autograd::impl::grad_accumulator(parameters[i]);
    const std::uintptr_t key = node->add_post_hook(std::make_unique<Hook>(*this, i));
    registrations_.push_back({std::move(node), key});
  }
}

GradientHooks::~GradientHooks() {
  for (const Registration& registration : registrations_) {
    registration.node->del_post_hook(registration.key);
  }
}

void GradientHooks::backward(const at::Tensor& loss, const OnFinal& on_final) {
  const Pass pass(on_final_, on_final);
  loss.backward();
}

}  // namespace sluice
