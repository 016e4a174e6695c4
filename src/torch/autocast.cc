#include "torch/autocast.h"

#include <ATen/autocast_mode.h>

namespace sluice {
namespace {

// Names and parameter types depend on the version of LibTorch; only its own branch is compiled.
template <class Device, class Flag, class Type>
void switch_autocast(Device device, Flag on, Type type) {
  using namespace at::autocast;
  if constexpr (requires { set_autocast_enabled(device, on); }) {
    set_autocast_dtype(device, type);
    set_autocast_enabled(device, on);
  } else if (device == c10::kCPU) {
    set_autocast_cpu_dtype(type);
    set_cpu_enabled(on);
  } else {
    set_autocast_gpu_dtype(type);
    set_enabled(on);
  }
}

}  // namespace

Autocast::Autocast(Precision precision, c10::DeviceType device)
    : on_(precision == Precision::kBf16), device_(device) {
  if (on_) {
    at::autocast::increment_nesting();
    switch_autocast(device_, true, at::kBFloat16);
  }
}

// LibTorch keeps parameters that it has converted until the last pass of a thread ends.
Autocast::~Autocast() {
  if (on_) {
    switch_autocast(device_, false, at::kBFloat16);
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
  }
}

}  // namespace sluice
