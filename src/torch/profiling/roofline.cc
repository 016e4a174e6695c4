#include "torch/profiling/roofline.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_set>

#include "torch/forward_gate.h"
#include "torch/network_setup.h"
#include "torch/operator_watch.h"
#include "torch/profiling/flops.h"

namespace sluice {
namespace {

const c10::StorageImpl* memory_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

Bytes bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<Bytes>(tensor.element_size());
}

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_tensor(element, visit);
    }
  } else if (value.isTensor() && value.toTensor().defined()) {
    visit(value.toTensor());
  }
}

// Follows the operators of one thread, including nested ones.
class CostMeter {
 public:
  explicit CostMeter(const std::vector<at::Tensor>& parameters) {
    for (const at::Tensor& parameter : parameters) {
      parameters_.insert(memory_of(parameter));
    }
  }

  void before(const at::RecordFunction& call) {
    if (depth_++ == 0) {
      cost_ = {};
      inputs_.clear();
      memory_.clear();
      for (const c10::IValue& input : call.inputs()) {
        for_each_tensor(input, [&](const at::Tensor& tensor) { see_input(tensor); });
      }
    }
    cost_.flops += flops_of(call);
  }

  // Passes the cost of an outermost operator to `take`.
  template <class Take>
  void after(const at::RecordFunction& call, const Take& take) {
    if (--depth_ > 0) {
      return;
    }
    bool writes = false;
    for (const c10::IValue& output : call.outputs()) {
      for_each_tensor(output, [&](const at::Tensor& tensor) {
        const bool in_place = inputs_.contains(tensor.unsafeGetTensorImpl());
        if (in_place || !memory_.contains(memory_of(tensor))) {
          writes = true;
          cost_.activations += bytes_of(tensor);
        }
      });
    }
    if (writes) {
      take(cost_);
    }
  }

 private:
  void see_input(const at::Tensor& tensor) {
    if (inputs_.insert(tensor.unsafeGetTensorImpl()).second) {
      memory_.insert(memory_of(tensor));
      const bool parameter = parameters_.contains(memory_of(tensor));
      (parameter ? cost_.parameters : cost_.activations) += bytes_of(tensor);
    }
  }

  std::unordered_set<const c10::StorageImpl*> parameters_;  // often read through a view
  int depth_ = 0;
  // Of the running operator.
  OperatorCost cost_;
  std::unordered_set<const c10::TensorImpl*> inputs_;
  std::unordered_set<const c10::StorageImpl*> memory_;
};

}  // namespace

std::vector<std::vector<OperatorCost>> operators_by_layer(Network& network, const Layout& layout,
                                                          const at::Tensor& samples,
                                                          const at::Tensor& labels) {
  const at::NoGradGuard no_grad;
  const WithoutOneDnn guard;
  const std::vector<at::Tensor> parameters = parameters_in_order(network, layout);
  const ForwardGate gate(parameters);
  CostMeter meter(parameters);
  std::vector<std::vector<OperatorCost>> operators(layout.layers.size());
  std::size_t layer = 0;
  bool trained = false;
  watch_operators(
      [&] {
        gate.run([&] { return network.loss(samples, labels); },
                 [&](std::size_t parameter) {
                   layer = std::max(layer, layout.layer_of[parameter].index());
                   trained = true;
                 });
      },
      [&](const at::RecordFunction& call) { meter.before(call); },
      [&](const at::RecordFunction& call) {
        meter.after(call, [&](OperatorCost cost) {
          cost.trained = trained;
          operators[layer].push_back(cost);
        });
      });
  return operators;
}

}  // namespace sluice
