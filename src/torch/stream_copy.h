#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>

namespace sluice {

// Copies between host and device in the order of `stream`, invisible to the gate that watches the
// forward pass. The host does not wait for it.
inline void copy(const at::Tensor& from, const at::Tensor& to, c10::Stream stream) {
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unwatched;
  const c10::StreamGuard on(stream);
  to.copy_(from, /*non_blocking=*/true);
}

}  // namespace sluice
