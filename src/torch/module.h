#pragma once

#include "torch/profiling/torch_profile.h"
#include "torch/torch_learner.h"

// LibTorch takes half a second to load, and most commands do not need it. So the code that uses it
// is a module, a separate file, which the program opens on the first call of one of the functions
// below. Both must be from the same build: they share types, exceptions and the one copy of the
// core, which is in the program.
namespace sluice {

struct TorchModule {
  const char* build;  // must equal the program's

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
