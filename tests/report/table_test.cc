#include "report/table.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace sluice {
namespace {

TEST(TableTest, AlignsColumns) {
  Table table({{"name"}, {"bytes", Table::Align::kRight}, {"note"}});
  table.add_row({"a", "1000", "x"});
  table.add_row({"longer", "1", ""});
  EXPECT_EQ(table.render(),
            "name    bytes  note\n"
            "a        1000  x\n"
            "longer      1\n");
}

TEST(TableTest, CountsLettersAndNotBytes) {
  Table table({{""}, {""}});
  table.add_row({"größe", "1"});
  table.add_row({"abcde", "2"});
  EXPECT_EQ(table.render(), "größe  1\nabcde  2\n");
}

TEST(TableTest, EmptyTablesAreEmpty) { EXPECT_EQ(Table({{""}}).render(), ""); }

TEST(TableTest, ARowHasACellForEveryColumn) {
  EXPECT_THROW(Table({{"a"}, {"b"}}).add_row({"1"}), InvariantError);
}

}  // namespace
}  // namespace sluice
