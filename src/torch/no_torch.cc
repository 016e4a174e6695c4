#include "torch/profiling/torch_profile.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

constexpr const char* kHowToGet =
    "this build has no LibTorch: install it (Debian: apt-get install libtorch-dev; elsewhere "
    "unpack "
    "LibTorch and pass -DCMAKE_PREFIX_PATH=/path/to/libtorch), then build with -DSLUICE_TORCH=ON";

}  // namespace

Result<LearnerFactory> make_torch_learners(const TorchTask& task) {
  return Error("model " + task.model + ": " + kHowToGet);
}

Result<std::string> torch_device(const std::string& /*asked*/) { return std::string("cpu"); }

Result<SampleForm> model_form(const std::string& model, std::int64_t /*input_size*/) {
  return Error("model " + model + ": " + kHowToGet);
}

std::vector<ModelInfo> torch_models() { return {}; }

EngineInfo torch_engine() {
  EngineInfo info;
  info.advice = kHowToGet;
  return info;
}

Result<EngineChoice> configure_engine(const TorchTask& task,
                                      const std::function<double()>& /*seconds*/,
                                      std::optional<Kernels> /*known*/) {
  return Error("model " + task.model + ": " + kHowToGet);
}

TorchTask with_kernels(TorchTask task, Kernels /*kernels*/) { return task; }

Result<Profile> measure_profile(const TorchTask& task, const std::function<double()>& /*seconds*/) {
  return Error("model " + task.model + ": " + kHowToGet);
}

Result<Profile> estimate_profile(const TorchTask& task, const DeviceSpeed& /*speed*/) {
  return Error("model " + task.model + ": " + kHowToGet);
}

}  // namespace sluice
