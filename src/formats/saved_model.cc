#include "formats/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "formats/checkpoint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kParameters = "parameters";

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

// The sum of what the workers have under a name in the files of all hosts.
class SumOfWorkers {
 public:
  explicit SumOfWorkers(std::string name) : name_("." + std::move(name)) {}

  Result<void> add(std::span<const StoredTensor> tensors) {
    for (const StoredTensor& tensor : tensors) {
      const bool is_one = tensor.name.starts_with("worker.") && tensor.name.ends_with(name_) &&
                          std::ranges::count(tensor.name, '.') == 2;
      if (!is_one) {
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
  std::string name_;
  std::vector<double> sum_;
  int workers_ = 0;
};

// Reads and parses files of a checkpoint, one after the other.
template <class Visit>
Result<void> visit_files(std::span<const CheckpointFile> files, const fs::path& path, Visit visit) {
  for (const CheckpointFile& file : files) {
    const auto bytes = read_checked(path, file);
    if (!bytes) {
      return bytes.error();
    }
    const auto tensors = parse_safetensors(std::as_bytes(std::span(*bytes)));
    const Result<void> taken = tensors ? visit(*tensors) : tensors.error();
    if (!taken) {
      return taken.error().within((path / file.name).string());
    }
  }
  return {};
}

bool is_parameters(const StoredTensor& tensor) {
  return tensor.name.starts_with("worker.") && tensor.name.ends_with(kParameters) &&
         tensor.type == ElementType::kFloat32;
}

// What the first worker has whose parameters are there: worker 0, unless its host was lost.
Result<void> take_first_worker(std::span<const StoredTensor> tensors, SavedModel& model) {
  const auto first = std::ranges::find_if(tensors, is_parameters);
  if (first == tensors.end()) {
    return Error("has no parameters of a worker");
  }
  model.tensors.push_back(own_copy(*first, std::string(kParameters)));
  const std::string learner =
      first->name.substr(0, first->name.size() - kParameters.size()) + "learner.";
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name.starts_with(learner)) {
      model.tensors.push_back(own_copy(tensor, tensor.name.substr(learner.size())));
    }
  }
  return {};
}

TensorCopy& parameters_of(SavedModel& model) {
  return *std::ranges::find(model.tensors, std::string("parameters"), &TensorCopy::name);
}

// Puts the parameters of a server where the manifest says that they belong: ranges, in the order in
// which the server has them. It throws if they are no ranges.
Result<void> take_server(const StoredTensor& tensor, const Json& ranges, SavedModel& model) {
  const std::span<std::byte> all = parameters_of(model).bytes;
  std::span<const std::byte> left = tensor.bytes;
  for (const Json& range : ranges) {
    const auto begin = range.at(0).get<std::uint32_t>() * sizeof(float);
    const auto end = range.at(1).get<std::uint32_t>() * sizeof(float);
    if (begin > end || end > all.size() || end - begin > left.size()) {
      return Error(tensor.name + " does not fit into the model");
    }
    std::ranges::copy(left.first(end - begin), all.begin() + static_cast<std::ptrdiff_t>(begin));
    left = left.subspan(end - begin);
  }
  return left.empty() ? Result<void>() : Error(tensor.name + " does not fit into the model");
}

// What is all zeros is in no file.
Result<void> take_servers(const fs::path& path, const CheckpointManifest& manifest,
                          const Json& shards, SavedModel& model) {
  std::ranges::fill(parameters_of(model).bytes, std::byte{0});
  model.lacks_statistics = true;
  return visit_files(manifest.files, path, [&](const auto& tensors) {
    for (std::size_t s = 0; s < shards.size(); ++s) {
      const std::string name = fmt::format("server.{}.parameters", s);
      const auto found = std::ranges::find(tensors, name, &StoredTensor::name);
      if (found == tensors.end()) {
        continue;
      }
      if (auto taken = take_server(*found, shards.at(s), model); !taken) {
        return taken;
      }
    }
    return Result<void>();
  });
}

// If any worker has something under this name.
Result<void> take_mean(const fs::path& path, const CheckpointManifest& manifest,
                       const std::string& name, SavedModel& model) {
  SumOfWorkers sum(name);
  auto added =
      visit_files(manifest.files, path, [&](const auto& tensors) { return sum.add(tensors); });
  const auto mean = sum.mean();
  if (!added || !mean) {
    return added;
  }
  const auto bytes = std::as_bytes(std::span(*mean));
  if (bytes.size() != parameters_of(model).bytes.size()) {
    return Error(fmt::format("{}: the {} are not as many as the parameters of a worker",
                             path.string(), name));
  }
  parameters_of(model).bytes.assign(bytes.begin(), bytes.end());
  model.lacks_statistics = true;
  return {};
}

// The result of a run whose replicas differ is what its servers have, the mean of its workers, or
// that of their global parameters.
Result<void> take_result(const fs::path& path, const CheckpointManifest& manifest,
                         SavedModel& model) {
  const Json& measured = manifest.measured;
  try {
    return measured.contains("shards")
               ? take_servers(path, manifest, measured.at("shards"), model)
               : take_mean(path, manifest, measured.value("means", "global"), model);
  } catch (const Json::exception& fault) {
    return Error(fmt::format("{}: the manifest does not say what the model is: {}", path.string(),
                             fault.what()));
  }
}

Result<SavedModel> read_checkpoint(const fs::path& path) {
  const auto manifest = read_manifest(path);
  if (!manifest) {
    return manifest.error();
  }
  if (manifest->files.empty()) {
    return Error(fmt::format("{}: has no file of a host", path.string()));
  }
  SavedModel model{.path = path.string(), .by_name = false};
  const auto taken_first =
      visit_files(std::span(manifest->files).first(1), path,
                  [&](const auto& tensors) { return take_first_worker(tensors, model); });
  if (!taken_first) {
    return taken_first.error();
  }
  if (const auto taken = take_result(path, *manifest, model); !taken) {
    return taken.error();
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
