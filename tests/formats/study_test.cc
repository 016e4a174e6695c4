#include "formats/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class StudyFileTest : public ::testing::Test {
 protected:
  Result<Study> read(const std::string& text) {
    folder_.write("a.toml", text);
    return read_study((folder_.path() / "a.toml").string());
  }

  TemporaryFolder folder_;
};

TEST_F(StudyFileTest, ReadsItsTableAndLeavesTheSettings) {
  const auto study = read(
      "sweep = \"hosts=2,4\"\n[study]\ntitle = \"T\"\npaper = \"P\"\nquick.iterations = 1\n"
      "quick.sweep = \"hosts=2\"\n[[study.figure]]\nwhat = \"w\"\npaper = \"1.5\"\nof = \"f\"\n"
      "at = \"hosts=2\"\nreaches = 0.9\n[[study.picture]]\nname = \"n\"\nat = \"hosts=2\"\n"
      "x = \"hosts\"\ny = \"f\"\n[[study.contest]]\nname = \"c\"\namong = \"preset=p3,asp\"\n"
      "rows = \"hosts=2\"\ncolumns = \"bandwidth_gbps=1\"\nof = \"f\"\ntitle = \"who\"\n");
  ASSERT_TRUE(study) << study.error().message();
  EXPECT_EQ(study->title, "T");
  EXPECT_EQ(study->quick.at("iterations"), "1");
  EXPECT_EQ(study->quick.at("sweep"), "hosts=2");
  ASSERT_EQ(study->figures.size(), 1U);
  EXPECT_EQ(study->figures[0].paper, "1.5");
  EXPECT_EQ(study->figures[0].reaches, 0.9);
  ASSERT_EQ(study->pictures.size(), 1U);
  EXPECT_EQ(study->pictures[0].y_title, "f");
  ASSERT_EQ(study->contests.size(), 1U);
  EXPECT_EQ(study->contests[0].among, "preset=p3,asp");
}

TEST_F(StudyFileTest, NamesWhatIsWrong) {
  EXPECT_THAT(read("hosts = 2\n").error().message(), HasSubstr("study: is missing"));
  EXPECT_THAT(read("[study]\ntitle = \"T\"\n").error().message(), HasSubstr("paper"));
  EXPECT_THAT(read("[study]\ntitle = \"T\"\npaper = \"P\"\n[[study.figure]]\nwhat = \"w\"\n")
                  .error()
                  .message(),
              HasSubstr("study.figure 1: paper"));
  EXPECT_THAT(read("[study]\ntitle = \"T\"\npaper = \"P\"\nfigures = 3\n").error().message(),
              HasSubstr("figures: is not a known key"));
}

}  // namespace
}  // namespace sluice
