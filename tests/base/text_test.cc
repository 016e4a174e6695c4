#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

const std::vector<std::string> kNames{"slice", "seed", "train", "credit"};

TEST(NearestTest, ForgivesOneSlip) {
  EXPECT_EQ(nearest("slcie", kNames), "slice") << "swapped";
  EXPECT_EQ(nearest("slce", kNames), "slice") << "missing";
  EXPECT_EQ(nearest("sslice", kNames), "slice") << "an extra letter";
  EXPECT_EQ(nearest("slife", kNames), "slice") << "wrong";
  EXPECT_EQ(nearest("trian", kNames), "train");
}

TEST(NearestTest, ForgivesTwoSlipsInALongWord) {
  const std::vector<std::string> names{"warmup-epochs", "json"};
  EXPECT_EQ(nearest("wramup-epcohs", names), "warmup-epochs");
  EXPECT_EQ(nearest("wramup-epcosh", names), "") << "three errors are too many in any word";
  EXPECT_EQ(nearest("jsno", names), "json");
  EXPECT_EQ(nearest("jsnoo", names), "") << "two errors are too many in four letters";
}

TEST(NearestTest, TakesTheNearest) { EXPECT_EQ(nearest("creditt", kNames), "credit"); }

TEST(NearestTest, SaysNothingWhereNothingIsClose) {
  EXPECT_EQ(nearest("bandwidth", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 's'), kNames), "");
}

TEST(NearestTest, EndsAComplaint) {
  EXPECT_EQ(suggestion("sede", kNames), "; did you mean seed?");
  EXPECT_EQ(suggestion("bandwidth", kNames), "");
}

TEST(OneLineTest, BlanksControlCharacters) {
  EXPECT_EQ(one_line("a\nb\tc\x7f\x1b[Kü"), "a b c  [Kü");
}

TEST(SplitListTest, HasAnEntryBetweenAnyTwoCommas) {
  using Entries = std::vector<std::string>;
  EXPECT_EQ(split_list(""), Entries());
  EXPECT_EQ(split_list("30"), Entries({"30"}));
  EXPECT_EQ(split_list("a,b=c, d"), Entries({"a", "b=c", " d"}));
  EXPECT_EQ(split_list(",a,,b,"), Entries({"", "a", "", "b", ""}));
}

TEST(TextTest, Utf8EndsAtTheFirstWrongByte) {
  const std::string good = "a\u00e9\u20ac\ud7ff\ue000\U0010ffff\n";
  EXPECT_EQ(utf8_length(good), good.size());
  EXPECT_EQ(utf8_length(""), 0U);
  for (const char* wrong : {"\x80", "\xc1\xbf", "\xc3", "\xc3\x28", "\xe0\x9f\xbf", "\xed\xa0\x80",
                            "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf8", "\xff"}) {
    EXPECT_EQ(utf8_length("xy" + std::string(wrong) + "z"), 2U);
  }
}

TEST(Quoted, IsOneWordForAShell) {
  EXPECT_EQ(shell_word("plain"), "'plain'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace sluice
