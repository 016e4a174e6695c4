#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sluice {

// Reports when each parameter's gradient is final, while the backward pass still runs.
class GradientHooks {
 public:
  // Called with the index of the parameter in the list given to the hooks.
  using OnFinal = std::function<void(std::size_t parameter)>;

  // What becomes of other backward passes that reach a parameter.
  enum class Elsewhere : std::uint8_t { kRefused, kIgnored };

  explicit GradientHooks(const std::vector<at::Tensor>& parameters,
                         Elsewhere elsewhere = Elsewhere::kRefused);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;  // the hooks point to it
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Runs the backward pass of `loss` and calls `on_final` on this thread once for every parameter
  // that the pass reaches. An exception of `on_final` ends the pass and propagates. Unless they
  // are ignored, any other backward pass that reaches a parameter fails with std::logic_error.
  void backward(const at::Tensor& loss, const OnFinal& on_final);

 private:
  class Hook;
  class Pass;
  struct Registration;

  const Elsewhere elsewhere_;
  const OnFinal* on_final_ = nullptr;  // of the running pass
  std::vector<Registration> registrations_;
};

}  // namespace sluice
