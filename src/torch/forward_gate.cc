#include "torch/forward_gate.h"

#include <exception>

#include "torch/operator_watch.h"

namespace sluice {
namespace {

using Places = std::unordered_map<const c10::TensorImpl*, std::size_t>;

// One run of a gate.
class GateRun {
 public:
  GateRun(const Places& places, const ForwardGate::BeforeRead& before_read)
      : places_(places), before_read_(before_read) {}

  void see(const c10::IValue& input) noexcept {
    if (failure_) {
      return;
    }
    if (input.isList()) {
      for (const c10::IValue& element : input.toListRef()) {
        see(element);
      }
    } else if (input.isTensor()) {
      see_tensor(input.toTensor());
    }
  }

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  void see_tensor(const at::Tensor& tensor) noexcept {
    const auto found = places_.find(tensor.unsafeGetTensorImpl());
    if (found == places_.end()) {
      return;
    }
    try {
      before_read_(found->second);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  const Places& places_;
  const ForwardGate::BeforeRead& before_read_;
  std::exception_ptr failure_;
};

}  // namespace

ForwardGate::ForwardGate(const std::vector<at::Tensor>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    places_.emplace(parameters[i].unsafeGetTensorImpl(), i);
  }
}

at::Tensor ForwardGate::run(const std::function<at::Tensor()>& forward,
                            const BeforeRead& before_read) const {
  GateRun run(places_, before_read);
  at::Tensor result;
  watch_operators([&] { result = forward(); },
                  [&](const at::RecordFunction& call) {
                    for (const c10::IValue& input : call.inputs()) {
                      run.see(input);
                    }
                  });
  run.rethrow();
  return result;
}

}  // namespace sluice
