#include "session/loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(LoadingTest, TheSummaryHasTheTallyOfTheLoader) {
  AheadLoader loader(0);  // without threads nothing is loaded ahead
  const auto stream =
      loader.open({[](std::int64_t number, Batch& batch) { batch.labels = {number}; }, 3});
  for (std::int64_t number = 0; number < 3; ++number) {
    stream->get(number);
  }
  const auto loading = loading_of(std::vector{text_of(loader.tally())});
  EXPECT_EQ(loading.at("batches"), 3);
  EXPECT_EQ(loading.at("batches_ahead"), 0);
  EXPECT_EQ(loading.at("loading_s"), to_seconds(loader.tally().loading));
  EXPECT_EQ(loading.at("waited_s"), to_seconds(loader.tally().waited));
}

TEST(LoadingTest, TheTableHasTwoRows) {
  Table table({{""}, {"", Table::Align::kRight}});
  add_loading_rows({{"batches", 12}, {"batches_ahead", 7}, {"loading_s", 0.256}, {"waited_s", 1.5}},
                   table);
  EXPECT_THAT(table.render(), HasSubstr("7 of 12\n"));
  EXPECT_THAT(table.render(), HasSubstr("0.26 / 1.50 s\n"));
}

}  // namespace
}  // namespace sluice
