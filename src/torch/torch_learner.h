#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/batch_stream.h"
#include "formats/saved_model.h"
#include "learners/learner.h"
#include "learners/sleeper.h"
#include "model/strategy.h"

// The rest of Sluice uses LibTorch only through this header. A build without LibTorch has the same
// functions, which tell the user how to get it.
namespace sluice {

// Whether a model is the path of a TorchScript file. Names of built-in models have neither a dot
// nor a slash.
inline bool is_model_file(const std::string& model) {
  return model.find_first_of("./") != std::string::npos;
}

// What forward passes compute in; parameters and gradients are always float32.
enum class Precision : std::uint8_t { kFp32, kBf16 };

inline constexpr std::array kPrecisionNames{
    Names<Precision>{Precision::kFp32, "fp32"},
    Names<Precision>{Precision::kBf16, "bf16"},
};

// What a model from a file learns to make small.
enum class Loss : std::uint8_t {
  kCrossEntropy,  // of its scores, with labels
  kMse,           // mean squared error of its outputs, with targets of the same shape
  kModule,        // what its forward(samples, targets) returns
};

inline constexpr std::array kLossNames{
    Names<Loss>{Loss::kCrossEntropy, "cross-entropy"},
    Names<Loss>{Loss::kMse, "mse"},
    Names<Loss>{Loss::kModule, "module"},
};

struct TorchTask {
  std::string model;  // one of torch_models(), or a TorchScript file
  std::shared_ptr<const Samples> train;
  std::shared_ptr<const Samples> test;
  std::int64_t batch = 64;      // of each worker, at a time
  std::int64_t accumulate = 1;  // an iteration has so many micro-batches of this size
  std::size_t workers = 1;
  std::uint64_t seed = 1;      // of the initial parameters and the order of the samples
  std::string device = "cpu";  // a result of torch_device()
  std::shared_ptr<const Sleeper> sleeper{};  // needed unless the device is the host
  bool channels_last = false;                // of images in memory
  Precision precision = Precision::kFp32;
  Loss loss = Loss::kCrossEntropy;  // of a model from a file
  std::shared_ptr<Loader> loader = std::make_shared<DirectLoader>();
  std::vector<double> shares = {};  // of the joined batch, by worker; empty: equal
  // Losses and gradients count by their share of the joined batch; else each is a mean of its own.
  bool joins_batches = true;
  std::shared_ptr<const SavedModel> start{};  // to begin with; none: drawn, or as in the file

  Sharding sharding() const {
    return {seed, train->size(), batch * accumulate, workers, train->bucket_ends(), shares};
  }
};

// The device to train on: "cpu", "cuda" (the GPUs of the machine in turn) or "cuda:N". "auto" takes
// GPUs if there are any. An error if there is no such device.
Result<std::string> torch_device(const std::string& asked);

// The factory may be called from several threads at once.
Result<LearnerFactory> make_torch_learners(const TorchTask& task);

// The samples that a built-in model was made for. `input_size`, unless 0, replaces the side of its
// images or its longest sentence. An error if the model does not support this size.
Result<SampleForm> model_form(const std::string& model, std::int64_t input_size);

struct ModelInfo {
  std::string name;
  std::string description;
  SampleForm form;
  std::int64_t parameters = 0;     // trained ones
  std::size_t layers = 0;          // with trained parameters
  std::int64_t forward_flops = 0;  // per sample, without auxiliary heads; see count_flops()
};
std::vector<ModelInfo> torch_models();

// What `sluice doctor` reports.
struct EngineInfo {
  bool available = false;
  std::string version;
  std::string blas;
  bool onednn = false;  // in use, not only built in
  int threads = 0;      // per operator
  bool cuda = false;
  std::string advice;  // what to install; empty if nothing is missing
};
EngineInfo torch_engine();

// How a CPU computes: with oneDNN or with LibTorch's own kernels, on images in channels-last or
// channels-first order. The choice changes the last bits of results.
enum class Kernels : std::uint8_t { kNative, kNativeChannelsLast, kOneDnn, kOneDnnChannelsLast };

inline constexpr std::array kKernelsNames{
    Names<Kernels>{Kernels::kNative, "native"},
    Names<Kernels>{Kernels::kNativeChannelsLast, "native-channels-last"},
    Names<Kernels>{Kernels::kOneDnn, "onednn"},
    Names<Kernels>{Kernels::kOneDnnChannelsLast, "onednn-channels-last"},
};

// What configure_engine() found.
struct EngineChoice {
  struct Trial {
    Kernels kernels = Kernels::kNative;
    double seconds = 0;  // per step of the task
  };

  Kernels kernels = Kernels::kNative;
  std::vector<Trial> trials;  // empty if the caller chose
};
// Prepares the process for one operator thread per worker. Then, unless the caller gives `known`,
// runs steps of the task with several kernels and chooses those that are clearly fastest. Call it
// before the first worker starts, and give workers the task that with_kernels() returns. `seconds`
// is a clock. With one, a step is tried in any other precision than float32; an error if it fails.
Result<EngineChoice> configure_engine(const TorchTask& task, const std::function<double()>& seconds,
                                      std::optional<Kernels> known = std::nullopt);
TorchTask with_kernels(TorchTask task, Kernels kernels);

}  // namespace sluice
