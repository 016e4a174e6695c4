// A module from another build of Sluice.

#include "torch/module.h"

extern "C" const sluice::TorchModule* sluice_torch_module() {
  static constexpr sluice::TorchModule kModule{"another build", nullptr, nullptr, nullptr, nullptr,
                                               nullptr,         nullptr, nullptr, nullptr, nullptr};
  return &kModule;
}
