#include "torch/autocast.h"

#include <ATen/autocast_mode.h>

namespace sluice {
namespace {

using namespace at::autocast;  // for names that not every version of LibTorch has

// The parameter types are deduced so that only the branch of this version is compiled.
template <class Device, class Flag>
void switch_autocast(Device device, Flag on) {
  const auto type = at::kBFloat16;
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
    increment_nesting();
    switch_autocast(device_, true);
  }
}

// LibTorch keeps parameters that it has converted until the last pass of a thread ends.
Autocast::~Autocast() {
  if (on_) {
    switch_autocast(device_, false);
    if (decrement_nesting() == 0) {
      clear_cache();
    }
  }
}

}  // namespace sluice
