#include "data/array_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "data/npy.h"

namespace sluice {
namespace {

template <class Value>
void append_rows(const std::vector<Value>& from, std::int64_t samples,
                 std::span<const std::int64_t> indices, std::vector<Value>& to) {
  to.clear();
  const std::int64_t row = static_cast<std::int64_t>(from.size()) / samples;
  for (const std::int64_t index : indices) {
    to.insert(to.end(), from.begin() + index * row, from.begin() + (index + 1) * row);
  }
}

std::vector<std::int64_t> shape_of_one(const std::vector<std::int64_t>& shape) {
  return {shape.begin() + 1, shape.end()};
}

Result<std::int64_t> count_of(const std::vector<std::int64_t>& values, const std::string& path,
                              bool may_be_missing) {
  const auto [least, most] = std::ranges::minmax(values);
  const auto is_wrong = [&](std::int64_t value) {
    return value < 0 && !(may_be_missing && value == kNoLabel);
  };
  if (std::ranges::any_of(values, is_wrong) || most < 0) {
    return Error(fmt::format("{}: has the value {}, expected numbers from 0 on{}", path, least,
                             may_be_missing ? ", or -100 where there is no label" : ""));
  }
  return most + 1;
}

Result<ArraySet> read_array_part(const std::string& folder, const std::string& part) {
  const std::string inputs_path = std::filesystem::path(folder) / (part + "-inputs.npy");
  const std::string targets_path = std::filesystem::path(folder) / (part + "-targets.npy");
  auto inputs = read_npy(inputs_path);
  if (!inputs) {
    return inputs.error();
  }
  auto targets = read_npy(targets_path);
  if (!targets) {
    return targets.error();
  }
  if (inputs->shape.size() < 2 || targets->shape.empty() ||
      inputs->shape.front() != targets->shape.front()) {
    return Error(fmt::format(
        "{}: is of shape ({}), and the targets are of shape ({}); expected as many rows of each, "
        "one per sample",
        inputs_path, fmt::join(inputs->shape, ", "), fmt::join(targets->shape, ", ")));
  }
  ArraySet set;
  set.count = inputs->shape.front();
  set.sample_form.shape = shape_of_one(inputs->shape);
  if (auto* words = std::get_if<std::vector<std::int64_t>>(&inputs->values)) {
    const auto count = count_of(*words, inputs_path, false);
    if (!count) {
      return count.error();
    }
    set.sample_form.words = *count;
    set.words = std::move(*words);
  } else {
    set.features = std::get<std::vector<float>>(std::move(inputs->values));
  }
  if (auto* labels = std::get_if<std::vector<std::int64_t>>(&targets->values)) {
    const auto count = count_of(*labels, targets_path, true);
    if (!count) {
      return count.error();
    }
    set.sample_form.classes = *count;
    set.labels = std::move(*labels);
  } else {
    set.sample_form.target_shape = shape_of_one(targets->shape);
    set.targets = std::get<std::vector<float>>(std::move(targets->values));
  }
  return set;
}

bool alike(const SampleForm& one, const SampleForm& other) {
  return one.shape == other.shape && (one.words > 0) == (other.words > 0) &&
         (one.classes > 0) == (other.classes > 0) && one.target_shape == other.target_shape;
}

}  // namespace

void ArraySet::load(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                    Batch& batch) const {
  const auto rows = static_cast<std::int64_t>(indices.size());
  batch.shape = sample_form.shape;
  batch.shape.insert(batch.shape.begin(), rows);
  batch.target_shape = sample_form.target_shape;
  batch.target_shape.insert(batch.target_shape.begin(), rows);
  append_rows(features, count, indices, batch.features);
  append_rows(words, count, indices, batch.words);
  append_rows(labels, count, indices, batch.labels);
  append_rows(targets, count, indices, batch.targets);
}

Result<ArraySplit> read_arrays(const std::string& folder) {
  auto train = read_array_part(folder, "train");
  if (!train) {
    return train.error();
  }
  auto test = read_array_part(folder, "test");
  if (!test) {
    return test.error();
  }
  if (!alike(train->sample_form, test->sample_form)) {
    return Error(fmt::format(
        "{}: samples and targets for the test are of another shape or type than those for training",
        folder));
  }
  ArraySplit split{*std::move(train), *std::move(test)};
  for (auto count : {&SampleForm::classes, &SampleForm::words}) {
    const std::int64_t most =
        std::max(split.train.sample_form.*count, split.test.sample_form.*count);
    split.train.sample_form.*count = most;
    split.test.sample_form.*count = most;
  }
  return split;
}

}  // namespace sluice
