#include "data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support/image_files.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageFolderTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, bytes);
  }
  void put_some() {
    put("train/dog/b.PNG", png_file(6, 5, noise(90, 1)));
    put("train/dog/deep/a.jpeg", jpeg_file(6, 5, noise(90, 2)));
    put("train/cat/z.jpg", jpeg_file(9, 9, noise(243, 3)));
    put("train/cat/notes.txt", "no image");
    put("train/readme", "no class");
    put("val/dog/c.png", png_file(4, 8, noise(96, 4)));
  }
  Result<ImageSplit> find(bool varied = true) {
    return find_images({folder_.path().string(), {3, 4, 4}, varied});
  }
  std::string complaint() {
    const auto split = find();
    return split ? "" : split.error().message();
  }

  TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, FoldersAreClassesByName) {
  put_some();
  const auto split = find();
  ASSERT_TRUE(split) << split.error().message();
  const std::string base = folder_.path().string();
  EXPECT_THAT(split->train.paths, ElementsAre(base + "/train/cat/z.jpg", base + "/train/dog/b.PNG",
                                              base + "/train/dog/deep/a.jpeg"));
  EXPECT_THAT(split->train.labels, ElementsAre(0, 1, 1));
  EXPECT_THAT(split->test.labels, ElementsAre(1));
  EXPECT_EQ(split->test.classes, 2);
  EXPECT_TRUE(split->train.varied);
  EXPECT_FALSE(split->test.varied);
  std::filesystem::rename(folder_.path() / "val", folder_.path() / "test");
  EXPECT_EQ(find()->test.size(), 1);
}

TEST_F(ImageFolderTest, TellsWhatIsMissing) {
  EXPECT_THAT(complaint(), HasSubstr("/train: cannot be read: No such file"));
  std::filesystem::create_directory(folder_.path() / "train");
  EXPECT_THAT(complaint(), HasSubstr("/train: expected a folder for each class, found none"));
  std::filesystem::create_directory(folder_.path() / "train/cat");
  EXPECT_THAT(complaint(),
              HasSubstr("/train/cat: expected images (.jpg, .jpeg, .png), found none"));
  put("train/cat/a.png", png_file(1, 1, {1, 2, 3}));
  EXPECT_THAT(complaint(), HasSubstr("/val: cannot be read"));
  put("val/cow/a.png", png_file(1, 1, {1, 2, 3}));
  EXPECT_THAT(complaint(), HasSubstr("/val/cow: expected one of the 1 classes of train"));
}

TEST_F(ImageFolderTest, AVariationDependsOnTheSampleAndTheChanceAlone) {
  put_some();
  const auto split = find();
  ASSERT_TRUE(split) << split.error().message();
  const ImageSet& set = split->train;
  Batch batch;
  set.load(std::array<std::int64_t, 3>{2, 0, 1}, 7, batch);
  EXPECT_THAT(batch.shape, ElementsAre(3, 3, 4, 4));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1));
  EXPECT_EQ(batch.features.size(), 3U * 48);
  Batch alone;
  set.load(std::array<std::int64_t, 1>{1}, 7, alone);
  EXPECT_EQ(alone.features, std::vector<float>(batch.features.end() - 48, batch.features.end()));
  Batch other;
  set.load(std::array<std::int64_t, 1>{1}, 8, other);
  EXPECT_NE(other.features, alone.features);
}

// Standardising a pixel as the set says gives what the set loads.
TEST_F(ImageFolderTest, TellsWhatItsSamplesWentThrough) {
  put_some();
  for (const char* name : {"train/dog/b.PNG", "train/cat/a.jpg"}) {
    std::filesystem::remove(folder_.path() / name);
  }
  put("train/cat/a.png", png_file(1, 1, {10, 20, 30}));
  put("train/dog/a.png", png_file(1, 1, {1, 2, 3}));
  for (const std::size_t channels : {1U, 3U}) {
    const auto split =
        find_images({.folder = folder_.path(), .raster = {channels, 1, 1}, .varied = false});
    ASSERT_TRUE(split) << split.error().message();
    const Preparation preparation = split->train.preparation();
    EXPECT_THAT(preparation.classes, ElementsAre("cat", "dog"));
    EXPECT_EQ(preparation, split->test.preparation());
    const auto cat = std::ranges::find_if(
        split->train.paths, [](const std::string& path) { return path.ends_with("cat/a.png"); });
    Batch batch;
    split->train.load(std::array{cat - split->train.paths.begin()}, 0, batch);
    double grey = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double value =
          (10.0 * static_cast<double>(c + 1) - preparation.mean[c]) / preparation.deviation[c];
      if (channels == 3) {
        EXPECT_NEAR(batch.features[c], value, 1e-5);
      } else {
        grey += preparation.grey_weights.at(c) * value;
      }
    }
    if (channels == 1) {
      EXPECT_NEAR(batch.features[0], grey, 1e-5);
    }
  }
}

TEST_F(ImageFolderTest, WithoutVariationTheMiddleIsSeen) {
  put_some();
  const auto split = find(false);
  Batch one;
  Batch two;
  split->train.load(std::array<std::int64_t, 1>{1}, 7, one);
  split->train.load(std::array<std::int64_t, 1>{1}, 8, two);
  EXPECT_EQ(one.features, two.features);
}

TEST_F(ImageFolderTest, ACorruptImageIsNamed) {
  put_some();
  put("train/dog/b.PNG", png_file(6, 5, noise(90, 1)).substr(0, 50));
  const auto split = find();
  Batch batch;
  try {
    split->train.load(std::array<std::int64_t, 1>{1}, 0, batch);
    FAIL() << "it loads";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/train/dog/b.PNG: offset 33: expected a chunk of"));
    EXPECT_THAT(error.what(), HasSubstr("the image is corrupt"));
  }
  std::filesystem::remove(folder_.path() / "train/dog/b.PNG");
  EXPECT_THROW(split->train.load(std::array<std::int64_t, 1>{1}, 0, batch), DataError);
}

}  // namespace
}  // namespace sluice
