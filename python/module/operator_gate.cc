#include "operator_gate.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <memory>

#include "reducer.h"

namespace sluice::python {
namespace {

void see_input(Reducer& reducer, const c10::IValue& input) {
  if (input.isTensor()) {
    const at::Tensor& tensor = input.toTensor();
    if (tensor.defined() && tensor.has_storage()) {
      reducer.before_read(tensor.storage().unsafeGetStorageImpl());
    }
  } else if (input.isList()) {
    for (const c10::IValue& element : input.toListRef()) {
      see_input(reducer, element);
    }
  }
}

}  // namespace

OperatorGate& OperatorGate::of_process() {
  static OperatorGate gate;
  return gate;
}

void OperatorGate::add(Reducer& reducer) {
  reducers_.push_back(&reducer);
  watch();
}

void OperatorGate::remove(Reducer& reducer) {
  std::erase(reducers_, &reducer);
  watch();
}

void OperatorGate::watch() {
  const bool any =
      std::ranges::any_of(reducers_, [](const Reducer* r) { return r->is_watching(); });
  if (any && !handle_) {
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&OperatorGate::see)
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  } else if (!any && handle_) {
    at::removeCallback(*handle_);
    handle_.reset();
  }
}

std::unique_ptr<at::ObserverContext> OperatorGate::see(const at::RecordFunction& call) {
  for (std::size_t i = 0; i < of_process().reducers_.size(); ++i) {
    Reducer& reducer = *of_process().reducers_[i];
    if (!reducer.is_watching()) {
      continue;
    }
    if (call.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      reducer.in_backward_pass();
    } else {
      for (const c10::IValue& input : call.inputs()) {
        see_input(reducer, input);
      }
    }
  }
  return nullptr;
}

}  // namespace sluice::python
