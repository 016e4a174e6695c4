// A module as another build of Sluice would have it.

#include "torch/module.h"

extern "C" const sluice::TorchModule* sluice_torch_module() {
  static constexpr sluice::TorchModule kModule{"another build", nullptr, nullptr, nullptr, nullptr,
                                               nullptr,         nullptr, nullptr, nullptr, nullptr};
  return &kModule;
}
