// The functions of torch_learner.h and torch_profile.h in the program: each opens the module and
// calls the function of the same name in it. Without a module they tell the user how to get one.

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/program_folder.h"
#include "torch/module.h"

namespace sluice {
namespace {

constexpr std::array kModuleFolders{SLUICE_MODULE_FOLDERS};  // relative to the program's

constexpr const char* kHowToGet =
    "this build has no LibTorch: install it (Debian: apt-get install libtorch-dev; elsewhere "
    "unpack LibTorch and pass -DCMAKE_PREFIX_PATH=/path/to/libtorch), then build with "
    "-DSLUICE_TORCH=ON";

// The module, or why there is none.
struct Opened {
  const TorchModule* module = nullptr;
  std::string why_not = {};
};

// Where the module may be, in the order of the search.
std::vector<std::filesystem::path> module_paths() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : kModuleFolders) {
    paths.push_back((program_folder() / folder / SLUICE_TORCH_MODULE).lexically_normal());
  }
  return paths;
}

Opened open_file(const std::string& path) {
  // Never closed: LibTorch's threads and its tables live as long as the process does.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return {.why_not = path + ": cannot be loaded: " + dlerror() +
                       "; install LibTorch where it was at the build, or build Sluice again"};
  }
  auto* open = reinterpret_cast<OpenTorchModule*>(dlsym(library, kOpenTorchModule));
  const TorchModule* module = open == nullptr ? nullptr : open();
  if (module == nullptr || std::string(module->build) != SLUICE_BUILD_ID) {
    return {.why_not = path + ": is from " +
                       (module == nullptr ? "something else" : module->build) +
                       " and not from this build (" SLUICE_BUILD_ID
                       "); install the program and its module together"};
  }
  return {.module = module};
}

Opened open_module() {
  if (!SLUICE_HAS_TORCH) {
    return {.why_not = kHowToGet};
  }
  const std::vector<std::filesystem::path> paths = module_paths();
  for (const auto& path : paths) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
      return open_file(path);
    }
  }
  return {.why_not = "the program was installed without its module for LibTorch: there is no " +
                     paths.front().string() + " and no " + paths.back().string() +
                     "; install the program and its module together"};
}

const Opened& opened() {
  static const Opened kOpened = open_module();
  return kOpened;
}

Error no_model(const std::string& model) {
  return Error("model " + model + ": " + opened().why_not);
}

}  // namespace

Result<std::string> torch_device(const std::string& asked) {
  return opened().module != nullptr ? opened().module->device(asked) : std::string("cpu");
}

Result<LearnerFactory> make_torch_learners(const TorchTask& task) {
  return opened().module != nullptr ? opened().module->make_learners(task) : no_model(task.model);
}

Result<SampleForm> model_form(const std::string& model, std::int64_t input_size) {
  return opened().module != nullptr ? opened().module->form(model, input_size) : no_model(model);
}

std::vector<ModelInfo> torch_models() {
  return opened().module != nullptr ? opened().module->models() : std::vector<ModelInfo>{};
}

EngineInfo torch_engine() {
  if (opened().module != nullptr) {
    return opened().module->engine();
  }
  EngineInfo info;
  info.advice = opened().why_not;
  return info;
}

Result<EngineChoice> configure_engine(const TorchTask& task, const std::function<double()>& seconds,
                                      std::optional<Kernels> known) {
  return opened().module != nullptr ? opened().module->configure(task, seconds, known)
                                    : no_model(task.model);
}

TorchTask with_kernels(TorchTask task, Kernels kernels) {
  return opened().module != nullptr ? opened().module->kernels(std::move(task), kernels) : task;
}

Result<Profile> measure_profile(const TorchTask& task, const std::function<double()>& seconds) {
  return opened().module != nullptr ? opened().module->measure(task, seconds)
                                    : no_model(task.model);
}

Result<Profile> estimate_profile(const TorchTask& task, const DeviceSpeed& speed) {
  return opened().module != nullptr ? opened().module->estimate(task, speed) : no_model(task.model);
}

}  // namespace sluice
