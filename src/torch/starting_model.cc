#include "torch/starting_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "torch/element_types.h"

namespace sluice {
namespace {

constexpr std::size_t kNamesShown = 3;

// "12 tensors that ...: a, b, c ..."; nothing if there are none.
std::string list_of(const std::vector<std::string>& names, const char* what) {
  if (names.empty()) {
    return "";
  }
  const std::size_t shown = std::min(names.size(), kNamesShown);
  return fmt::format(
      "; {} tensor{} {}: {}{}", names.size(), names.size() == 1 ? "" : "s", what,
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < names.size() ? " ..." : "");
}

// A number of any floating type will do for another one.
bool fits(const TensorCopy& saved, const at::Tensor& tensor) {
  const at::ScalarType type = scalar_type_of(saved.type);
  return saved.shape == tensor.sizes().vec() &&
         (type == tensor.scalar_type() ||
          (at::isFloatingType(type) && at::isFloatingType(tensor.scalar_type())));
}

std::string mismatch(const TensorCopy& saved, const at::Tensor& tensor) {
  return fmt::format("{} is {} [{}], the model has {} [{}]", saved.name,
                     c10::toString(scalar_type_of(saved.type)), fmt::join(saved.shape, "x"),
                     c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes().vec(), "x"));
}

// Fills what fits; empty if all did.
std::string fill_network(const Network& network, const SavedModel& saved) {
  const at::NoGradGuard no_grad;
  std::map<std::string, const TensorCopy*> unused;
  for (const TensorCopy& tensor : saved.tensors) {
    unused.emplace(tensor.name, &tensor);
  }
  const std::vector<NamedTensor> weights = network.weights();
  std::set<const void*> filled;
  std::vector<std::string> misshapen;
  for (const auto& [name, tensor] : weights) {
    const auto found = unused.find(name);
    if (found == unused.end()) {
      continue;
    }
    const TensorCopy& from = *found->second;
    filled.insert(tensor.unsafeGetTensorImpl());
    unused.erase(found);
    if (!fits(from, tensor)) {
      misshapen.push_back(mismatch(from, tensor));
      continue;
    }
    const at::Tensor value =
        at::empty(from.shape, at::TensorOptions().dtype(scalar_type_of(from.type)));
    check(value.nbytes() == from.bytes.size(), "a tensor of a file is as long as its shape");
    if (!from.bytes.empty()) {
      std::memcpy(value.data_ptr(), from.bytes.data(), from.bytes.size());
    }
    tensor.copy_(value);
  }
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : weights) {
    if (!filled.contains(tensor.unsafeGetTensorImpl())) {
      missing.push_back(name);
    }
  }
  std::vector<std::string> extra;
  for (const auto& [name, tensor] : unused) {
    extra.push_back(name);
  }
  return list_of(missing, "of the model not in the file") +
         list_of(extra, "in the file that the model does not have") +
         list_of(misshapen, "of another shape or type");
}

Error unfit(const SavedModel& saved, const std::string& why) {
  return Error(fmt::format("init: {}: is not a file of this model{}", saved.path, why));
}

Result<void> fill_learner(Learner& learner, const SavedModel& saved) {
  const std::span<float> parameters = learner.parameters();
  const auto flat = std::ranges::find(saved.tensors, std::string("parameters"), &TensorCopy::name);
  check(flat != saved.tensors.end(), "the model of a checkpoint has parameters");
  if (flat->bytes.size() != parameters.size_bytes()) {
    return unfit(saved, fmt::format("; it has {} parameters, and the model has {}",
                                    flat->bytes.size() / sizeof(float), parameters.size()));
  }
  std::memcpy(parameters.data(), flat->bytes.data(), flat->bytes.size());
  // Behind the state of the network comes that of an optimiser.
  const std::size_t own = learner.remembered().size();
  std::vector<StoredTensor> state;
  for (std::size_t i = 0; i < own; ++i) {
    const auto one = std::ranges::find(saved.tensors, std::to_string(i), &TensorCopy::name);
    if (one != saved.tensors.end()) {
      state.push_back(one->view());
    }
  }
  const auto recalled = learner.recall(state);
  return recalled ? Result<void>() : unfit(saved, "; " + recalled.error().message());
}

}  // namespace

Result<NetworkFactory> starting_with(const NetworkFactory& make,
                                     const std::shared_ptr<const SavedModel>& saved) {
  if (const std::string why = fill_network(*make(), *saved); !why.empty()) {
    return unfit(*saved, why);
  }
  return NetworkFactory([make, saved] {
    std::unique_ptr<Network> network = make();
    const std::string why = fill_network(*network, *saved);
    check(why.empty(), "all networks of a run are alike");
    return network;
  });
}

Result<LearnerFactory> starting_with(const LearnerFactory& make,
                                     const std::shared_ptr<const SavedModel>& saved) {
  if (const auto fits = fill_learner(*make(0), *saved); !fits) {
    return fits.error();
  }
  return LearnerFactory([make, saved](std::size_t rank) {
    std::unique_ptr<Learner> learner = make(rank);
    check(static_cast<bool>(fill_learner(*learner, *saved)), "all learners of a run are alike");
    return learner;
  });
}

}  // namespace sluice
