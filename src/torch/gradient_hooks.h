#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace sluice {

// Reports when each parameter's gradient is final, while the backward pass still runs.
class GradientHooks {
 public:
  // Called with the index of the parameter in the list given to the hooks.
  using OnFinal = std::function<void(std::size_t parameter)>;

  explicit GradientHooks(const std::vector<at::Tensor>& parameters);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;  // the hooks point to it
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Runs the backward pass of `loss` and calls `on_final` on this thread once for every parameter
  // that the pass reaches. An exception of `on_final` ends the pass and propagates. Any other
  // backward pass that reaches a parameter fails with std::logic_error.
  void backward(const at::Tensor& loss, const OnFinal& on_final);

 private:
  class Hook;
  class Pass;
  struct Registration;

  const OnFinal* on_final_ = nullptr;  // of the running pass
  std::vector<Registration> registrations_;
};

}  // namespace sluice
