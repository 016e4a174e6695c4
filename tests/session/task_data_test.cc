// For a model from a file, which takes what the user says: LibTorch is not needed.
#include "session/task_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TaskDataTest : public ::testing::Test {
 protected:
  TaskDataTest() {
    spec_.model = "net.pt";
    log_.info = [this](const std::string& text) { said_.push_back(text); };
  }

  void ask_for(DataKind kind, std::vector<std::int64_t> shape, const std::string& folder = "") {
    spec_.data = {};
    spec_.data.kind = kind;
    spec_.data.input_shape = std::move(shape);
    spec_.data.folder = folder;
  }
  TaskData read() const {
    auto data = read_task_data(spec_, log_);
    EXPECT_TRUE(data) << data.error().message();
    return data ? *data : TaskData{};
  }
  std::string refusal() const {
    const auto data = read_task_data(spec_, log_);
    return data ? "" : data.error().message();
  }

  TaskSpec spec_;
  Log log_;
  std::vector<std::string> said_;
};

TEST_F(TaskDataTest, MadeUpSamplesHaveTheFormThatWasAskedFor) {
  ask_for(DataKind::kSynthetic, {3, 4});
  spec_.data.classes = 7;
  spec_.data.samples = 50;
  const TaskData data = read();
  EXPECT_EQ(data.train->size(), 50);
  EXPECT_EQ(data.test->size(), 5);
  EXPECT_THAT(data.train->form().shape, ElementsAre(3, 4));
  EXPECT_EQ(data.train->form().classes, 7);
  EXPECT_EQ(data.train->form().words, 0);
}

TEST_F(TaskDataTest, MadeUpSamplesFollowTheSeed) {
  ask_for(DataKind::kSynthetic, {3});
  spec_.data.samples = 2;
  const auto features = [&](std::uint64_t seed) {
    spec_.seed = seed;
    Batch batch;
    read().train->load(std::vector<std::int64_t>{0, 1}, 0, batch);
    return batch.features;
  };
  EXPECT_EQ(features(1), features(1));
  EXPECT_NE(features(1), features(2));
}

TEST_F(TaskDataTest, ThereAreEnoughSamplesUnlessFewAreAskedFor) {
  ask_for(DataKind::kSynthetic, {8});
  EXPECT_EQ(read().train->size(), 10'000);
  spec_.data.samples = 3;
  EXPECT_EQ(read().train->size(), 3);
  EXPECT_EQ(read().test->size(), 1);
}

TEST_F(TaskDataTest, WordsComeAsPairsOfSentences) {
  ask_for(DataKind::kSynthetic, {2, 6});
  spec_.data.input_words = 30;
  spec_.data.classes = 20;
  spec_.data.samples = 5;
  EXPECT_EQ(read().train->form().words, 30);
  EXPECT_EQ(read().train->form().classes, 20);
  spec_.data.input_words = 3;
  EXPECT_THAT(refusal(), StartsWith("input-words and classes: expected more than 4"));
  spec_.data.input_words = 30;
  spec_.data.input_shape = {3, 6};
  EXPECT_THAT(refusal(), StartsWith("input-shape: is \"3x6\", expected 2xLONGEST"));
}

TEST_F(TaskDataTest, AFormThatIsMissingIsNamed) {
  ask_for(DataKind::kSynthetic, {});
  EXPECT_THAT(refusal(), StartsWith("input-shape: is missing; "));
  EXPECT_THAT(refusal(), HasSubstr("for data synthetic"));
}

TEST_F(TaskDataTest, AFolderThatIsMissingIsNamed) {
  for (const DataKind kind :
       {DataKind::kCifar10, DataKind::kCifar100, DataKind::kImages, DataKind::kText}) {
    ask_for(kind, {3, 8, 8});
    EXPECT_EQ(refusal(), "data-dir: is missing; data " + std::string(name_of(kDataNames, kind)) +
                             " needs the folder of its files");
  }
}

TEST_F(TaskDataTest, CifarIsVariedForTrainingOnly) {
  const TemporaryFolder folder;
  std::string record(2 + 3072, '\0');
  for (std::size_t i = 2; i < record.size(); ++i) {
    record[i] = static_cast<char>(i * 7 % 251);
  }
  folder.write("train.bin", record);
  folder.write("test.bin", record);
  ask_for(DataKind::kCifar100, {}, folder.path());
  const auto features = [&](const std::shared_ptr<const Samples>& samples, std::uint64_t seed) {
    Batch batch;
    samples->load(std::vector<std::int64_t>{0}, seed, batch);
    return batch.features;
  };
  const TaskData varied = read();
  EXPECT_NE(features(varied.train, 1), features(varied.train, 2));
  EXPECT_EQ(features(varied.test, 1), features(varied.test, 2));
  spec_.data.augment = false;
  const TaskData plain = read();
  EXPECT_EQ(features(plain.train, 1), features(plain.test, 2));
}

TEST_F(TaskDataTest, CharactersComeInWindows) {
  const TemporaryFolder folder;
  folder.write("a", std::string(90, 'a'));
  folder.write("b", std::string(10, 'b'));
  ask_for(DataKind::kCharacters, {1, 4}, folder.path());
  EXPECT_EQ(read().train->size(), 22);
  EXPECT_EQ(read().test->size(), 2);
  spec_.data.samples = 5;
  spec_.data.test_samples = 1;
  EXPECT_EQ(read().train->size(), 5);
  EXPECT_EQ(read().test->size(), 1);
  const auto words = [&](const std::shared_ptr<const Samples>& samples, std::uint64_t seed) {
    Batch batch;
    samples->load(std::vector<std::int64_t>{0, 1, 2, 3}, seed, batch);
    return batch.words;
  };
  spec_.data.test_samples = 0;
  spec_.data.samples = 0;
  folder.write("a", "abcdefghijklmnopqrstuvwxyz" + std::string(64, 'a'));
  folder.write("b", "abcdefghijklmnopqrstuvwxyz");
  EXPECT_NE(words(read().train, 1), words(read().train, 2)) << "varied for training only";
  EXPECT_EQ(read().test->size(), 2);
  spec_.data.augment = false;
  EXPECT_EQ(words(read().train, 1), words(read().train, 2));
  spec_.data.input_shape = {2, 4};
  EXPECT_THAT(refusal(), StartsWith("input-shape: is \"2x4\", expected 1xLENGTH"));
}

TEST_F(TaskDataTest, ImagesNeedOneOrThreeChannels) {
  const TemporaryFolder folder;
  ask_for(DataKind::kImages, {2, 8, 8}, folder.path());
  EXPECT_THAT(refusal(), StartsWith("data: model net.pt does not take images"));
  spec_.data.input_shape = {8, 8};
  EXPECT_THAT(refusal(), StartsWith("data: model net.pt does not take images"));
  spec_.data.input_shape = {3, 8, 8};
  EXPECT_THAT(refusal(), HasSubstr("train/CLASS/IMAGE")) << "the folder is empty";
}

TEST_F(TaskDataTest, TextIsReadAndWhatIsLeftOutIsSaid) {
  const TemporaryFolder folder;
  folder.write("train.de", "a b\na b c d e f\n");
  folder.write("train.en", "x y\nx\n");
  folder.write("val.de", "a\n");
  folder.write("val.en", "y\n");
  ask_for(DataKind::kText, {2, 20}, folder.path());
  spec_.data.source = "de";
  spec_.data.target = "en";
  EXPECT_EQ(read().train->size(), 2);
  EXPECT_THAT(said_, IsEmpty());
  spec_.data.input_shape = {2, 4};
  EXPECT_EQ(read().train->size(), 1);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("1 pairs of sentences are left out")));
}

}  // namespace
}  // namespace sluice
