#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <string>

#include "torch/script_network.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

// LibTorch may call BLAS through a library that the system chooses at run time, so OpenBLAS must be
// looked up; nullptr if another BLAS is loaded.
template <class Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

struct Blas {
  std::string name;
  bool tuned = true;
};

Blas find_blas() {
  if (auto* get_config = find_symbol<char*()>("openblas_get_config")) {
    return {get_config(), true};
  }
  if (at::hasMKL()) {
    return {"MKL", true};
  }
  Dl_info library{};
  if (dladdr(dlsym(RTLD_DEFAULT, "sgemm_"), &library) != 0 && library.dli_fname != nullptr) {
    return {library.dli_fname, false};
  }
  return {"built into LibTorch", true};
}

// OpenBLAS ignores LibTorch's setting.
void use_one_thread() {
  at::set_num_threads(1);
  if (auto* set_num_threads = find_symbol<void(int)>("openblas_set_num_threads")) {
    set_num_threads(1);
  }
}

// TF32 for matrix products, the usual choice in PyTorch for training.
void use_tf32() {
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
}

// cuDNN wants the weights of an LSTM in a separate buffer. Here they are ranges of one buffer, and
// LibTorch would warn about it in every step.
void mute_warnings() {
  constexpr int kErrors = 2;
  FLAGS_caffe2_log_level = kErrors;
}

// Seconds of the fastest of a few steps after a warm-up.
double measure_step(Learner& learner, const std::function<double()>& seconds) {
  constexpr double kEnough = 0.2;
  NoHooks hooks;
  learner.step(0, hooks);
  const double begin = seconds();
  double fastest = std::numeric_limits<double>::infinity();
  for (double now = begin; now - begin < kEnough;) {
    learner.step(0, hooks);
    const double after = seconds();
    fastest = std::min(fastest, after - now);
    now = after;
  }
  return fastest;
}

bool uses_onednn(Kernels kernels) {
  return kernels == Kernels::kOneDnn || kernels == Kernels::kOneDnnChannelsLast;
}

bool is_channels_last(Kernels kernels) {
  return kernels == Kernels::kNativeChannelsLast || kernels == Kernels::kOneDnnChannelsLast;
}

// Other runs of the process may read the switch just now, so it is written only to change it.
void use_onednn(bool on) {
  if (at::globalContext().userEnabledMkldnn() != on) {
    at::globalContext().setUserEnabledMkldnn(on);
  }
}

// LibTorch has no bfloat16 form of some operators, and its oneDNN none of any on some processors.
Error no_bf16(const TorchTask& task, const std::string& kernels, const std::exception& why) {
  return Error(
      fmt::format("precision bf16: model {} cannot be computed on {}{}: {}; use --precision fp32{}",
                  task.model, task.device, kernels.empty() ? "" : " with kernels " + kernels,
                  gist_of(why), kernels.empty() ? "" : ", or other --kernels"));
}

Result<EngineChoice::Trial> try_kernels(const TorchTask& task, Kernels kernels,
                                        const std::function<double()>& seconds) {
  TorchTask repeated = with_kernels(task, kernels);
  repeated.loader = std::make_shared<DirectLoader>();  // repeats one step: no batches to load ahead
  const auto make_learner = make_torch_learners(repeated);
  if (!make_learner) {
    return make_learner.error();
  }
  use_onednn(uses_onednn(kernels));
  try {
    return EngineChoice::Trial{kernels, measure_step(*(*make_learner)(0), seconds)};
  } catch (const std::exception& e) {
    if (task.precision == Precision::kFp32) {
      throw;
    }
    return no_bf16(task, std::string(name_of(kKernelsNames, kernels)), e);
  }
}

// Whether a step can be computed in the task's precision with the kernels in use.
Result<void> check_precision(const TorchTask& task, const std::string& kernels) {
  if (task.precision == Precision::kFp32) {
    return {};
  }
  TorchTask once = task;
  once.loader = std::make_shared<DirectLoader>();
  const auto make_learner = make_torch_learners(once);
  if (!make_learner) {
    return make_learner.error();
  }
  try {
    NoHooks hooks;
    (*make_learner)(0)->step(0, hooks);
    return {};
  } catch (const std::exception& e) {
    return no_bf16(task, kernels, e);
  }
}

Kernels with_channels_last(Kernels kernels) {
  return uses_onednn(kernels) ? Kernels::kOneDnnChannelsLast : Kernels::kNativeChannelsLast;
}

Result<EngineChoice> fastest_kernels(const TorchTask& task,
                                     const std::function<double()>& seconds) {
  // Results depend on the choice, so noise should not decide it.
  constexpr double kClearly = 0.95;
  const bool images = task.train->form().shape.size() == 3;
  std::vector<Kernels> candidates{Kernels::kNative};
  if (at::hasMKLDNN()) {
    candidates.push_back(Kernels::kOneDnn);
  }
  EngineChoice choice;
  std::optional<Error> failure;
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto trial = try_kernels(task, candidates[i], seconds);
    if (!trial) {
      failure = trial.error();
    } else {
      choice.trials.push_back(*trial);
      if (trial->seconds < kClearly * fastest) {
        fastest = trial->seconds;
        choice.kernels = trial->kernels;
      }
    }
    // The other layout is tried only with the faster kernels: the slower ones can take long.
    if (images && i + 1 == candidates.size() && !is_channels_last(candidates[i])) {
      candidates.push_back(with_channels_last(choice.kernels));
    }
  }
  return choice.trials.empty() && failure ? Result<EngineChoice>(*failure) : choice;
}

}  // namespace

EngineInfo torch_engine() {
  EngineInfo info;
  info.available = true;
  info.version = TORCH_VERSION;
  const Blas blas = find_blas();
  info.blas = blas.name;
  if (!blas.tuned) {
    info.advice =
        "LibTorch computes with " + blas.name +
        ", which may be many times slower than OpenBLAS: apt-get install libopenblas0-pthread";
  }
  info.onednn = at::hasMKLDNN() && at::globalContext().userEnabledMkldnn();
  info.threads = at::get_num_threads();
  info.cuda = at::hasCUDA();
  return info;
}

Result<EngineChoice> configure_engine(const TorchTask& task, const std::function<double()>& seconds,
                                      std::optional<Kernels> known) {
  use_one_thread();
  if (task.device != "cpu") {
    use_tf32();
    mute_warnings();
    const auto computes = seconds ? check_precision(task, "") : Result<void>();
    return computes ? Result<EngineChoice>(EngineChoice{}) : computes.error();
  }
  EngineChoice choice;
  if (known) {
    choice.kernels = *known;
    use_onednn(uses_onednn(*known));
    const std::string name(name_of(kKernelsNames, *known));
    if (const auto computes =
            seconds ? check_precision(with_kernels(task, *known), name) : Result<void>();
        !computes) {
      return computes.error();
    }
  } else if (auto chosen = fastest_kernels(task, seconds); !chosen) {
    return chosen;
  } else {
    choice = *std::move(chosen);
  }
  use_onednn(uses_onednn(choice.kernels));
  return choice;
}

TorchTask with_kernels(TorchTask task, Kernels kernels) {
  task.channels_last = is_channels_last(kernels);
  return task;
}

}  // namespace sluice
