#include "formats/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/file.h"
#include "formats/checkpoint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWorker0 = "worker.0.";

TensorCopy own_copy(const StoredTensor& tensor, std::string name) {
  return {std::move(name), tensor.type, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}};
}

// PyTorch's own files are ZIP archives.
bool is_archive(const std::string& bytes) { return bytes.starts_with("PK"); }

Result<SavedModel> read_named(const fs::path& path) {
  const auto bytes = read_file(path);
  if (!bytes) {
    return bytes.error();
  }
  if (is_archive(*bytes)) {
    return Error(fmt::format(
        "{}: is no safetensors file but one of torch.save; write the parameters with "
        "safetensors.torch.save_file(model.state_dict(), FILE), or train a TorchScript file by "
        "--model",
        path.string()));
  }
  const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes)));
  if (!tensors) {
    return tensors.error().within(path.string());
  }
  SavedModel model{.path = path.string()};
  for (const StoredTensor& tensor : *tensors) {
    model.tensors.push_back(own_copy(tensor, tensor.name));
  }
  return model;
}

// The sum of the workers' global parameters in the files of all hosts.
class SumOfGlobals {
 public:
  Result<void> add(std::span<const StoredTensor> tensors) {
    for (const StoredTensor& tensor : tensors) {
      if (!tensor.name.starts_with("worker.") || !tensor.name.ends_with(".global")) {
        continue;
      }
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      if (workers_ > 0 && values.size() != sum_.size()) {
        return Error(tensor.name + " is not as long as that of another worker");
      }
      std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
      sum_.resize(values.size());
      std::ranges::transform(values, sum_, sum_.begin(),
                             [](float a, double b) { return static_cast<double>(a) + b; });
      ++workers_;
    }
    return {};
  }

  // As many floats as the parameters; none if no worker has any.
  std::optional<std::vector<float>> mean() const {
    if (workers_ == 0) {
      return std::nullopt;
    }
    std::vector<float> mean(sum_.size());
    std::ranges::transform(sum_, mean.begin(),
                           [&](double sum) { return static_cast<float>(sum / workers_); });
    return mean;
  }

 private:
  std::vector<double> sum_;
  int workers_ = 0;
};

// What worker 0 has, which the file of its host holds.
Result<void> take_worker_0(std::span<const StoredTensor> tensors, SavedModel& model) {
  const std::string parameters = std::string(kWorker0) + "parameters";
  const std::string learner = std::string(kWorker0) + "learner.";
  bool found = false;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == parameters && tensor.type == ElementType::kFloat32) {
      model.tensors.push_back(own_copy(tensor, "parameters"));
      found = true;
    } else if (tensor.name.starts_with(learner)) {
      model.tensors.push_back(own_copy(tensor, tensor.name.substr(learner.size())));
    }
  }
  return found ? Result<void>() : Error("has no parameters of worker 0");
}

// Where workers have parameters of their own, the result of the run is the mean of the global ones.
Result<void> take_globals(const SumOfGlobals& globals, SavedModel& model) {
  const auto mean = globals.mean();
  if (!mean) {
    return {};
  }
  const auto parameters =
      std::ranges::find(model.tensors, std::string("parameters"), &TensorCopy::name);
  const auto bytes = std::as_bytes(std::span(*mean));
  if (bytes.size() != parameters->bytes.size()) {
    return Error("the global parameters are not as many as the worker's");
  }
  parameters->bytes.assign(bytes.begin(), bytes.end());
  model.lacks_statistics = true;
  return {};
}

Result<SavedModel> read_checkpoint(const fs::path& path) {
  const auto manifest = read_manifest(path);
  if (!manifest) {
    return manifest.error();
  }
  SavedModel model{.path = path.string(), .by_name = false};
  SumOfGlobals globals;
  for (const CheckpointFile& file : manifest->files) {
    const auto bytes = read_checked(path, file);
    if (!bytes) {
      return bytes.error();
    }
    const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes)));
    Result<void> taken = tensors ? Result<void>() : tensors.error();
    if (taken && file.name == host_file_name(0)) {
      taken = take_worker_0(*tensors, model);
    }
    if (taken) {
      taken = globals.add(*tensors);
    }
    if (!taken) {
      return taken.error().within((path / file.name).string());
    }
  }
  if (model.tensors.empty()) {
    return Error(fmt::format("{}: has no {}", path.string(), host_file_name(0)));
  }
  if (const auto taken = take_globals(globals, model); !taken) {
    return taken.error().within(path.string());
  }
  return model;
}

}  // namespace

Result<SavedModel> read_saved_model(const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) {
    return read_named(path);
  }
  if (const fs::path saved = path / "model.safetensors"; fs::exists(saved, none)) {
    return read_named(saved);
  }
  if (fs::exists(path / "manifest.json", none)) {
    return read_checkpoint(path);
  }
  const CheckpointFolder folder(path);
  std::string faults;
  for (const Iteration iteration : folder.iterations()) {
    auto model = read_checkpoint(folder.of(iteration));
    if (model) {
      return model;
    }
    faults += "; " + model.error().message();
  }
  return Error(fmt::format("{}: has neither model.safetensors nor a sound checkpoint{}",
                           path.string(), faults));
}

}  // namespace sluice
