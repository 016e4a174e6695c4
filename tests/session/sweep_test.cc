#include "session/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sweep, HasAllCombinationsAndTheLastAxisChangesFastest) {
  const auto sweep = Sweep::parse("hosts=4,16 preset=p3,wfbp,single");
  ASSERT_TRUE(sweep);
  ASSERT_EQ(sweep->cells(), 6U);
  EXPECT_THAT(sweep->values(0), ElementsAre("4", "p3"));
  EXPECT_THAT(sweep->values(1), ElementsAre("4", "wfbp"));
  EXPECT_THAT(sweep->values(5), ElementsAre("16", "single"));
  EXPECT_EQ(sweep->name(3), "hosts=16 preset=p3");
}

TEST(Sweep, HasEachCellWithEachOfAnother) {
  const auto sweep = Sweep::parse("preset=p3 hosts=4,8; preset=asp");
  const auto all = sweep->each_with(*Sweep::parse("gbps=1,10"));
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->cells(), 6U);
  EXPECT_EQ(all->name(0), "preset=p3 hosts=4 gbps=1");
  EXPECT_EQ(all->name(1), "preset=p3 hosts=4 gbps=10");
  EXPECT_EQ(all->name(5), "preset=asp gbps=10");
  EXPECT_EQ(all->axes()[2].key, "gbps");
  EXPECT_THAT(sweep->each_with(*Sweep::parse("hosts=2")).error().message(),
              HasSubstr("hosts: is an axis of the sweep already"));
}

TEST(Sweep, GroupsCellsThatDifferInOneAxis) {
  const auto sweep = Sweep::parse("seed=1,2,3 preset=p3,asp hosts=4");
  ASSERT_TRUE(sweep);
  const auto groups = sweep->groups_over("seed");
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[1].values, ElementsAre("asp", "4"));
  EXPECT_THAT(groups[1].cells, ElementsAre(1, 3, 5));
  const auto others = sweep->axes_without("seed");
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].key, "preset");
  EXPECT_EQ(sweep->groups_over("slice").size(), 6U);
}

TEST(Sweep, HasSeveralTablesOneAfterTheOther) {
  const auto sweep = Sweep::parse("preset=bsp,asp hosts=4,8; preset=ssp staleness=3,10 hosts=4");
  ASSERT_TRUE(sweep);
  ASSERT_EQ(sweep->cells(), 6U);
  ASSERT_EQ(sweep->axes().size(), 3U);
  EXPECT_THAT(sweep->axes()[0].values, ElementsAre("bsp", "asp", "ssp"));
  EXPECT_THAT(sweep->values(0), ElementsAre("bsp", "4", ""));
  EXPECT_THAT(sweep->values(5), ElementsAre("ssp", "4", "10"));
  EXPECT_EQ(sweep->name(3), "preset=asp hosts=8");
  EXPECT_EQ(sweep->name(4), "preset=ssp hosts=4 staleness=3");
  EXPECT_FALSE(Sweep::parse("hosts=4;"));
}

TEST(Sweep, NamesWhatIsWrong) {
  const auto complaint = [](const std::string& text) {
    return Sweep::parse(text).error().message();
  };
  EXPECT_THAT(complaint("hosts"), HasSubstr("hosts: expected KEY=VALUE"));
  EXPECT_THAT(complaint("=4"), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(complaint(" "), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(complaint("hosts="), HasSubstr("a value is missing"));
  EXPECT_THAT(complaint("hosts=4,"), HasSubstr("a value is missing"));
  EXPECT_THAT(complaint("hosts=,4"), HasSubstr("a value is missing"));
  EXPECT_THAT(complaint("hosts=4,4"), HasSubstr("4 occurs twice"));
  EXPECT_THAT(complaint("hosts=4 hosts=8"), HasSubstr("hosts: occurs twice"));
}

RC_GTEST_PROP(Sweep, EveryCellIsADifferentCombination, ()) {
  std::string text;
  const auto axes = *rc::gen::inRange<std::size_t>(1, 6);
  const auto sizes = *rc::gen::container<std::vector<int>>(axes, rc::gen::inRange(1, 5));
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    text += " k" + std::to_string(a) + "=0";
    for (int v = 1; v < sizes[a]; ++v) {
      text += "," + std::to_string(v);
    }
  }
  const auto sweep = Sweep::parse(text);
  RC_ASSERT(sweep);
  std::set<std::vector<std::string>> seen;
  for (std::size_t cell = 0; cell < sweep->cells(); ++cell) {
    RC_ASSERT(seen.insert(sweep->values(cell)).second);
  }
}

TEST(ForEachCell, RunsEachOnceOnAnyNumberOfThreads) {
  for (const std::size_t threads : {1U, 3U, 100U}) {
    std::vector<std::atomic<int>> runs(17);
    std::vector<std::size_t> finished;
    for_each_cell(
        runs.size(), threads, [&](std::size_t cell) { ++runs[cell]; },
        [&](std::size_t count) { finished.push_back(count); });
    for (const auto& count : runs) {
      EXPECT_EQ(count, 1);
    }
    ASSERT_EQ(finished.size(), runs.size());
    EXPECT_EQ(finished.back(), runs.size());
  }
}

TEST(ForEachCell, RethrowsAndBeginsNoMore) {
  std::atomic<int> begun = 0;
  const auto run = [&](std::size_t cell) {
    ++begun;
    if (cell == 2) {
      throw std::runtime_error("cell 2");
    }
  };
  EXPECT_THROW(for_each_cell(1000, 1, run, [](std::size_t) {}), std::runtime_error);
  EXPECT_EQ(begun, 3);
}

}  // namespace
}  // namespace sluice
