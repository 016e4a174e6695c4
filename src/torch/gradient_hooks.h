#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace sluice {

// Tells when each parameter's gradient is final, while the backward pass is still in flight.
class GradientHooks {
 public:
  // Called with the place of the parameter in the list given to the hooks.
  using OnFinal = std::function<void(std::size_t parameter)>;

  explicit GradientHooks(const std::vector<at::Tensor>& parameters);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;  // the hooks know its place
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Runs the backward pass of `loss`, calling `on_final` on this thread once for every parameter
  // that the pass reaches. What `on_final` throws ends the pass and comes out of here. Any other
  // backward pass that reaches a parameter fails with std::logic_error.
  void backward(const at::Tensor& loss, const OnFinal& on_final);

 private:
  class Hook;
  class Pass;
  struct Registration;

  const OnFinal* on_final_ = nullptr;  // of the pass in flight
  std::vector<Registration> registrations_;
};

}  // namespace sluice
