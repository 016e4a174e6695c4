#include "torch/module.h"

extern "C" const sluice::TorchModule* sluice_torch_module() {
  static constexpr sluice::TorchModule kModule{.build = SLUICE_BUILD_ID,
                                               .device = &sluice::torch_device,
                                               .make_learners = &sluice::make_torch_learners,
                                               .form = &sluice::model_form,
                                               .models = &sluice::torch_models,
                                               .engine = &sluice::torch_engine,
                                               .configure = &sluice::configure_engine,
                                               .kernels = &sluice::with_kernels,
                                               .measure = &sluice::measure_profile,
                                               .estimate = &sluice::estimate_profile};
  return &kModule;
}
