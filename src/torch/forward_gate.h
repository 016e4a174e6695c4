#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

namespace sluice {

// Stops a forward pass before it reads parameters, without a change to the model. LibTorch shows
// every operator's inputs to an observer of the thread before it runs the operator.
class ForwardGate {
 public:
  // Called with the index of the parameter in the list given to the gate; may block.
  using BeforeRead = std::function<void(std::size_t parameter)>;

  explicit ForwardGate(const std::vector<at::Tensor>& parameters);

  // Runs `forward` and calls `before_read` on this thread before every operator that reads a
  // parameter. If `before_read` throws, it is not called again, and run() rethrows the exception
  // after the pass, because LibTorch does not let an observer's exceptions through.
  at::Tensor run(const std::function<at::Tensor()>& forward, const BeforeRead& before_read) const;

 private:
  std::unordered_map<const c10::TensorImpl*, std::size_t> places_;
};

}  // namespace sluice
