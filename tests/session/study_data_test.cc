#include "session/study_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kSpeeds =
    "preset,hosts,iteration_us,computation_us\n"
    "kvstore,2,3000,1500\nkvstore,4,5000,1500\np3,2,2000,1500\np3,4,2000,1500\n";

// Two seeds, two evaluations each.
constexpr const char* kCurves =
    "preset,staleness,seed,epoch,time_s,test_accuracy\n"
    "bsp,,1,1,10,0.5\nbsp,,1,2,20,0.8\nbsp,,2,1,10,0.7\nbsp,,2,2,20,0.9\n"
    "ssp,3,1,1,6,0.3\nssp,3,1,2,12,0.6\nssp,10,1,1,5,0.2\nssp,10,1,2,10,0.4\n";

StudyData parsed(const char* csv) {
  const auto data = StudyData::parse(csv, "data.csv");
  EXPECT_TRUE(data);
  return *data;
}

StudyFigure figure_of(const std::string& of, const std::string& at, const std::string& over = "") {
  StudyFigure figure;
  figure.of = of;
  figure.at = at;
  figure.over = over;
  return figure;
}

TEST(StudyDataTest, FindsAFigureAndItsRatioToAnother) {
  const StudyData data = parsed(kSpeeds);
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=kvstore hosts=4"))->mean, 5000);
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=kvstore hosts=4.0", "preset=p3"))->mean,
            2.5);
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=kvstore hosts=2,4", "preset=p3"))->mean,
            2.5)
      << "the largest";
  StudyFigure share = figure_of("computation_us", "preset=p3 hosts=2");
  share.per = "iteration_us";
  share.times = 100;
  EXPECT_EQ(data.figure(share)->mean, 75);
}

TEST(StudyDataTest, TakesTheLastEvaluationOfEachSeed) {
  const StudyData data = parsed(kCurves);
  StudyFigure accuracy = figure_of("test_accuracy", "preset=bsp");
  accuracy.times = 100;
  const auto here = data.figure(accuracy);
  ASSERT_TRUE(here);
  EXPECT_DOUBLE_EQ(here->mean, 85);
  EXPECT_EQ(here->count, 2U);
  EXPECT_EQ(data.figure(figure_of("test_accuracy", "preset=ssp staleness=10"))->mean, 0.4);
}

TEST(StudyDataTest, TakesTheFirstEvaluationThatReachesAnAccuracy) {
  const StudyData data = parsed(kCurves);
  StudyFigure time = figure_of("time_s", "preset=bsp");
  time.reaches = 0.7;
  EXPECT_EQ(data.figure(time)->mean, 15);
  time.reaches = 0.85;
  EXPECT_THAT(data.figure(time).error().message(), HasSubstr("0.85 is not reached"));
}

TEST(StudyDataTest, AnAxisThatIsNotNamedIsOneThatTheTableLacks) {
  const StudyData data = parsed("preset,credit,iteration_us\np3,,10\np3,5,20\n");
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=p3"))->mean, 10);
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=p3 credit=5"))->mean, 20);
  EXPECT_EQ(data.figure(figure_of("iteration_us", "preset=p3 credit=5", "credit=-"))->mean, 2);
}

TEST(StudyDataTest, SaysWhatIsNotInTheData) {
  const StudyData data = parsed(kCurves);
  const auto complaint = [&](const StudyFigure& figure) {
    return data.figure(figure).error().message();
  };
  EXPECT_THAT(complaint(figure_of("test_accuracy", "preset=asp")),
              HasSubstr("preset=asp: is not in the data"));
  EXPECT_THAT(complaint(figure_of("loss", "preset=bsp")), HasSubstr("loss: is no column"));
  EXPECT_THAT(complaint(figure_of("time_s", "preset=ssp")), HasSubstr("staleness is 10 and 3"));
  EXPECT_FALSE(StudyData::parse("a,epoch\n1\n", "data.csv"));
}

TEST(StudyDataTest, DrawsCurvesAndAxes) {
  const StudyData curves = parsed(kCurves);
  StudyPicture picture;
  picture.at = "preset=bsp; preset=ssp staleness=3";
  picture.x = "epoch";
  picture.y = "test_accuracy";
  picture.times = 10;
  const auto chart = curves.picture(picture);
  ASSERT_TRUE(chart);
  ASSERT_EQ(chart->lines.size(), 2U);
  EXPECT_EQ(chart->lines[0].name, "bsp");
  EXPECT_THAT(chart->lines[0].points, ElementsAre(Pair(1, 6), Pair(2, 8.5)));
  picture.at = "preset=kvstore,p3";
  picture.x = "hosts";
  picture.y = "iteration_us";
  picture.times = 1;
  EXPECT_THAT(parsed(kSpeeds).picture(picture)->lines[0].points,
              ElementsAre(Pair(2, 3000), Pair(4, 5000)));
}

}  // namespace
}  // namespace sluice
