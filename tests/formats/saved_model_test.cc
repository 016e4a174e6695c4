#include "formats/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "formats/checkpoint.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Named = std::map<std::string, std::vector<float>>;

FileDigest write_floats(const fs::path& path, const Named& values) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, floats] : values) {
    tensors.push_back({name,
                       ElementType::kFloat32,
                       {static_cast<std::int64_t>(floats.size())},
                       std::as_bytes(std::span(floats))});
  }
  fs::create_directories(path.parent_path());
  const auto written = write_safetensors(path, std::move(tensors));
  check(static_cast<bool>(written), "the file is written");
  return *written;
}

// A whole checkpoint with these tensors of its hosts.
fs::path write_checkpoint(const fs::path& folder, Iteration iteration,
                          const std::vector<Named>& hosts) {
  const CheckpointFolder checkpoints(folder);
  CheckpointManifest manifest{.iteration = iteration, .version = "1"};
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::string name = host_file_name(h);
    manifest.files.push_back(
        {name, write_floats(checkpoints.aside(iteration, "t") / name, hosts[h])});
  }
  check(static_cast<bool>(checkpoints.publish(manifest, "t")), "the checkpoint is published");
  return checkpoints.of(iteration);
}

std::vector<float> values_of(const SavedModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.tensors, name, &TensorCopy::name);
  if (found == model.tensors.end()) {
    return {};
  }
  std::vector<float> values(found->bytes.size() / sizeof(float));
  std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
  return values;
}

std::string saved_model_complaint(const fs::path& path) {
  const auto model = read_saved_model(path);
  return model ? "" : model.error().message();
}

TEST(SavedModelTest, AFileAndItsFolderHaveParametersByName) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "saved" / "model.safetensors";
  write_floats(file, {{"fc.bias", {1, 2}}, {"fc.weight", {3}}});
  for (const fs::path& path : {file, file.parent_path()}) {
    const auto model = read_saved_model(path);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_TRUE(model->by_name);
    EXPECT_EQ(model->path, file.string());
    EXPECT_THAT(values_of(*model, "fc.bias"), ElementsAre(1, 2));
    EXPECT_THAT(values_of(*model, "fc.weight"), ElementsAre(3));
  }
}

TEST(SavedModelTest, OfACheckpointItIsWhatWorker0Has) {
  const TemporaryFolder folder;
  const fs::path path = write_checkpoint(folder.path(), 7,
                                         {{{"worker.0.parameters", {1, 2}},
                                           {"worker.0.optimizer.momentum_buffer", {8, 8}},
                                           {"worker.0.learner.0", {5}},
                                           {"worker.1.parameters", {3, 4}}},
                                          {{"worker.2.parameters", {3, 4}}}});
  const auto model = read_saved_model(path);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(model->by_name);
  EXPECT_FALSE(model->lacks_statistics);
  EXPECT_EQ(model->tensors.size(), 2U);
  EXPECT_THAT(values_of(*model, "parameters"), ElementsAre(1, 2));
  EXPECT_THAT(values_of(*model, "0"), ElementsAre(5));
}

TEST(SavedModelTest, WithoutWorker0ItIsWhatTheNextOneHas) {
  const TemporaryFolder folder;
  const auto model = read_saved_model(write_checkpoint(
      folder.path(), 7, {{{"worker.1.parameters", {3, 4}}, {"worker.1.learner.0", {6}}}}));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(values_of(*model, "parameters"), ElementsAre(3, 4));
  EXPECT_THAT(values_of(*model, "0"), ElementsAre(6));
}

// As a run of local steps evaluates it: pairs of workers have global parameters of their own.
TEST(SavedModelTest, OfLocalStepsItIsTheMeanOfTheGlobalParameters) {
  const TemporaryFolder folder;
  const std::vector<Named> hosts{
      {{"worker.0.parameters", {9, 9}}, {"worker.0.global", {1, 0.5F}}},
      {{"worker.1.global", {2, 0.5F}}, {"worker.2.global", {6, 0.5F}}, {"server.0.global", {7}}}};
  const auto model = read_saved_model(write_checkpoint(folder.path(), 1, hosts));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(model->lacks_statistics);
  EXPECT_THAT(values_of(*model, "parameters"), ElementsAre(3, 0.5F));
}

TEST(SavedModelTest, OfSeveralCheckpointsItIsTheNewestSoundOne) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), 5, {{{"worker.0.parameters", {5}}}});
  const fs::path newest = write_checkpoint(folder.path(), 9, {{{"worker.0.parameters", {9}}}});
  EXPECT_THAT(values_of(*read_saved_model(folder.path()), "parameters"), ElementsAre(9));
  fs::resize_file(newest / host_file_name(0), 20);
  EXPECT_THAT(values_of(*read_saved_model(folder.path()), "parameters"), ElementsAre(5));
  EXPECT_THAT(saved_model_complaint(newest), HasSubstr("has 20 bytes"));
}

TEST(SavedModelTest, OthersAreRefusedWithACause) {
  const TemporaryFolder folder;
  EXPECT_THAT(saved_model_complaint(folder.path() / "none"), HasSubstr("none"));
  EXPECT_THAT(saved_model_complaint(folder.path()),
              HasSubstr("has neither model.safetensors nor a sound checkpoint"));
  EXPECT_THAT(saved_model_complaint(folder.write("net.pt", "PK\x03\x04 and more")),
              HasSubstr("safetensors.torch.save_file"));
  EXPECT_THAT(saved_model_complaint(folder.write("short", "abc")), HasSubstr("is too short"));
  EXPECT_THAT(
      saved_model_complaint(write_checkpoint(folder.path(), 3, {{{"server.0.parameters", {1}}}})),
      HasSubstr("has no parameters of a worker"));
  EXPECT_THAT(saved_model_complaint(write_checkpoint(
                  folder.path(), 4, {{{"worker.0.parameters", {1}}, {"worker.0.global", {1, 2}}}})),
              HasSubstr("are not as many"));
}

}  // namespace
}  // namespace sluice
