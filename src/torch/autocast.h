#pragma once

#include <c10/core/DeviceType.h>

#include "torch/torch_learner.h"

namespace sluice {

// While it lives, the operators of this thread compute in the precision, as far as LibTorch holds
// that for safe. Parameters and their gradients stay float32. It does nothing for kFp32.
class Autocast {
 public:
  Autocast(Precision precision, c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  c10::DeviceType device_;
};

}  // namespace sluice
