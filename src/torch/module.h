#pragma once

#include "torch/profiling/torch_profile.h"
#include "torch/torch_learner.h"

// LibTorch takes half a second to load, and most commands do not need it. So what computes with it
// is a module, a file of its own, which the program opens when one of the functions below is first
// called. The two are of one build: they share types, exceptions and the one copy of the core that
// is in the program.
namespace sluice {

struct TorchModule {
  const char* build;  // must be the program's own

  decltype(&torch_device) device;
  decltype(&make_torch_learners) make_learners;
  decltype(&model_form) form;
  decltype(&torch_models) models;
  decltype(&torch_engine) engine;
  decltype(&configure_engine) configure;
  decltype(&with_kernels) kernels;
  decltype(&measure_profile) measure;
  decltype(&estimate_profile) estimate;
};

// The one symbol that the program looks up in the module, under the name below.
using OpenTorchModule = const TorchModule*();
inline constexpr const char* kOpenTorchModule = "sluice_torch_module";

}  // namespace sluice
