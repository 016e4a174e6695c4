#include "torch/starting_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/temporary_folder.h"
#include "torch/saved_network.h"
#include "torch/some_learners.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a trained network leaves in a file.
SavedModel saved_crooked(const TemporaryFolder& folder) {
  const TorchTask task = task_with({6}, 3);
  const auto learner = make_network_learners(make_crooked, task)(0);
  for (float& value : learner->parameters()) {
    value += 0.25F;
  }
  check(static_cast<bool>(learner->save(folder.path())), "the model is saved");
  return *read_saved_model(folder.path());
}

std::map<std::string, at::Tensor> weights_by_name(const Network& network) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, tensor] : network.weights()) {
    all[name] = tensor.detach().clone();
  }
  return all;
}

std::string start_complaint(SavedModel saved) {
  const auto made =
      starting_with(make_crooked, std::make_shared<const SavedModel>(std::move(saved)));
  return made ? "" : made.error().message();
}

std::size_t index_of(const SavedModel& saved, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(saved.tensors, name, &TensorCopy::name) -
                                  saved.tensors.begin());
}

TEST(StartingModelTest, ANetworkBeginsWithTheSavedOne) {
  const TemporaryFolder folder;
  const auto saved = std::make_shared<const SavedModel>(saved_crooked(folder));
  const auto make = starting_with(make_crooked, saved);
  ASSERT_TRUE(make) << make.error().message();
  const auto weights = weights_by_name(*(*make)());
  EXPECT_EQ(weights.size(), saved->tensors.size());
  for (const TensorCopy& tensor : saved->tensors) {
    const at::Tensor& own = weights.at(tensor.name);
    EXPECT_EQ(std::memcmp(own.data_ptr(), tensor.bytes.data(), tensor.bytes.size()), 0)
        << tensor.name;
  }
}

TEST(StartingModelTest, OneNameOfATensorIsEnough) {
  const TemporaryFolder folder;
  SavedModel saved = saved_crooked(folder);
  ASSERT_LT(index_of(saved, "again.weight"), saved.tensors.size());
  std::erase_if(saved.tensors,
                [](const TensorCopy& tensor) { return tensor.name.starts_with("again."); });
  EXPECT_EQ(start_complaint(saved), "");
}

TEST(StartingModelTest, ItSaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  const SavedModel whole = saved_crooked(folder);
  EXPECT_EQ(start_complaint(whole), "");
  SavedModel less = whole;
  std::erase_if(less.tensors,
                [](const TensorCopy& tensor) { return tensor.name == "exit.weight"; });
  EXPECT_THAT(start_complaint(less), HasSubstr("1 tensor of the model not in the file: "
                                               "exit.weight"));
  SavedModel more = whole;
  more.tensors.push_back({"other", ElementType::kFloat32, {0}, {}});
  EXPECT_THAT(start_complaint(more), HasSubstr("1 tensor in the file that the model does not "
                                               "have: other"));
  SavedModel turned = whole;
  std::ranges::reverse(turned.tensors.at(index_of(turned, "exit.weight")).shape);
  EXPECT_THAT(start_complaint(turned),
              HasSubstr("exit.weight is Float [5x3], the model has Float [3x5]"));
  SavedModel whole_numbers = whole;
  whole_numbers.tensors.at(index_of(turned, "scale")).type = ElementType::kInt32;
  EXPECT_THAT(start_complaint(whole_numbers),
              HasSubstr("scale is Int [5], the model has Float [5]"));
  SavedModel foreign;
  for (const char* name : {"a", "b", "c", "d"}) {
    foreign.tensors.push_back({name, ElementType::kFloat32, {0}, {}});
  }
  EXPECT_THAT(start_complaint(foreign), HasSubstr("4 tensors in the file that the model does not "
                                                  "have: a, b, c ..."));
}

TEST(StartingModelTest, HalfPrecisionIsTakenAsItIs) {
  const TemporaryFolder folder;
  SavedModel saved = saved_crooked(folder);
  TensorCopy& scale = saved.tensors.at(index_of(saved, "scale"));
  scale.type = ElementType::kBfloat16;
  const std::vector<std::uint16_t> values(5, 0x4080);  // 4.0
  const auto bytes = std::as_bytes(std::span(values));
  scale.bytes.assign(bytes.begin(), bytes.end());
  const auto make = starting_with(make_crooked, std::make_shared<const SavedModel>(saved));
  ASSERT_TRUE(make) << make.error().message();
  EXPECT_TRUE(weights_by_name(*(*make)()).at("scale").equal(at::full({5}, 4.0F)));
}

TEST(StartingModelTest, ALearnerBeginsWithACheckpoint) {
  const TorchTask task = task_with({6}, 3);
  const LearnerFactory make = make_network_learners(make_crooked, task);
  const auto before = make(0);
  std::vector<float> parameters = copy_of(before->parameters());
  std::ranges::for_each(parameters, [](float& value) { value *= 2; });
  SavedModel saved{.path = "kept", .by_name = false};
  const auto bytes = std::as_bytes(std::span(parameters));
  saved.tensors.push_back({"parameters",
                           ElementType::kFloat32,
                           {static_cast<std::int64_t>(parameters.size())},
                           {bytes.begin(), bytes.end()}});
  std::ranges::move(before->remembered(), std::back_inserter(saved.tensors));
  // What an optimiser remembered stays behind.
  saved.tensors.push_back(
      {std::to_string(before->remembered().size()), ElementType::kFloat32, {0}, {}});
  const auto start = starting_with(make, std::make_shared<const SavedModel>(saved));
  ASSERT_TRUE(start) << start.error().message();
  EXPECT_EQ(copy_of((*start)(1)->parameters()), parameters);
  saved.tensors.front().bytes.resize(4);
  EXPECT_THAT(starting_with(make, std::make_shared<const SavedModel>(saved)).error().message(),
              HasSubstr("kept: is not a file of this model; it has 1 parameters"));
}

}  // namespace
}  // namespace sluice
