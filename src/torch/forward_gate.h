#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

namespace sluice {

// Stops a forward pass before it reads parameters, without a change to the model: LibTorch shows
// every operator's inputs to an observer of the thread before it runs the operator.
class ForwardGate {
 public:
  // Called with the place of the parameter in the list given to the gate; may block.
  using BeforeRead = std::function<void(std::size_t parameter)>;

  explicit ForwardGate(const std::vector<at::Tensor>& parameters);

  // Runs `forward`, calling `before_read` before every operator that reads a parameter, on this
  // thread. If `before_read` throws, it is not called again and run() throws the same when the pass
  // is over, for LibTorch lets no exception of an observer through.
  at::Tensor run(const std::function<at::Tensor()>& forward, const BeforeRead& before_read) const;

 private:
  std::unordered_map<const c10::TensorImpl*, std::size_t> places_;
};

}  // namespace sluice
