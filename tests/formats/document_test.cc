#include "formats/document.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace sluice {
namespace {

std::string complaint(const Form& form, const Json& value) {
  const auto checked = form.check(value);
  return checked ? "" : checked.error().message();
}

TEST(FormTest, AcceptsIntegersInTheirRange) {
  const Form form = Form::integer(1, 8);
  EXPECT_EQ(complaint(form, 1), "");
  EXPECT_EQ(complaint(form, 8U), "");
  EXPECT_EQ(complaint(form, 0), "is 0, expected an integer from 1 to 8");
  EXPECT_EQ(complaint(form, 9), "is 9, expected an integer from 1 to 8");
  EXPECT_EQ(complaint(form, 2.0), "is 2, expected an integer from 1 to 8");
  EXPECT_EQ(complaint(form, "2"), "is \"2\", expected an integer from 1 to 8");
  EXPECT_EQ(complaint(form, true), "is true, expected an integer from 1 to 8");
}

TEST(FormTest, RefusesIntegersThatWrapAround) {
  const Form form = Form::integer(std::numeric_limits<std::int64_t>::min(), 8);
  EXPECT_NE(complaint(form, std::numeric_limits<std::uint64_t>::max()), "");
}

TEST(FormTest, AcceptsFiniteNumbersInTheirRange) {
  const Form form = Form::number(0, 2.5);
  EXPECT_EQ(complaint(form, 0), "");
  EXPECT_EQ(complaint(form, 2.5), "");
  EXPECT_EQ(complaint(form, -0.5), "is -0.5, expected a number from 0 to 2.5");
  EXPECT_EQ(complaint(form, std::nan("")), "is nan, expected a number from 0 to 2.5");
  EXPECT_EQ(complaint(form, -INFINITY), "is -inf, expected a number from 0 to 2.5");
  EXPECT_EQ(complaint(form, nullptr), "is null, expected a number from 0 to 2.5");
  EXPECT_NE(complaint(form, std::numeric_limits<std::uint64_t>::max()), "");
}

TEST(FormTest, AcceptsWords) {
  const Form form = Form::word({"fifo", "priority"});
  EXPECT_EQ(complaint(form, "fifo"), "");
  EXPECT_EQ(complaint(form, "prority"),
            "is \"prority\", expected one of fifo, priority; did you mean priority?");
  EXPECT_EQ(complaint(form, 1), "is 1, expected one of fifo, priority");
  EXPECT_EQ(complaint(Form::integer(1, 2).or_word({"all"}), "all"), "");
  EXPECT_EQ(complaint(Form::integer(1, 2).or_word({"all"}), "none"),
            "is \"none\", expected an integer from 1 to 2 or all");
}

TEST(FormTest, RefusesEmptyLists) {
  EXPECT_EQ(complaint(Form::list(), Json::array()),
            "is [], expected a list with at least one element");
}

TEST(FormTest, ShowsLongValuesInPart) {
  const std::string text = complaint(Form::integer(1, 8), std::string(1000, 'x'));
  EXPECT_LT(text.size(), 120U);
  EXPECT_NE(text.find(std::string(40, 'x')), std::string::npos) << "a part is shown";
  const std::string umlauts = complaint(Form::integer(1, 8), [] {
    std::string s;
    for (int i = 0; i < 100; ++i) {
      s += "ü";
    }
    return s;
  }());
  EXPECT_NO_THROW(Json(umlauts).dump()) << "cut within a letter";
}

TEST(FieldsTest, ReadsKeysAndFallsBack) {
  const Json table{{"a", 1}, {"b", "x"}};
  Fields fields(table, "f");
  EXPECT_EQ(fields.get<std::int64_t>("a", Form::integer(0, 9)), 1);
  EXPECT_EQ(fields.get<std::string>("b", Form::text()), "x");
  EXPECT_EQ(fields.get<double>("c", Form::number(0, 1), 0.5), 0.5);
  EXPECT_TRUE(fields.done());
}

TEST(FieldsTest, TheFirstComplaintStands) {
  const Json table{{"a", -1}};
  Fields fields(table, "f");
  fields.get<std::int64_t>("a", Form::integer(0, 9));
  fields.get<std::int64_t>("b", Form::integer(0, 9));
  EXPECT_EQ(fields.done().error().message(), "f: a: is -1, expected an integer from 0 to 9");
}

TEST(FieldsTest, AnUnknownKeyExplainsAMissingOne) {
  const Json table{{"hots", 1}};
  Fields fields(table, "f");
  fields.get<std::int64_t>("hosts", Form::integer(0, 9));
  EXPECT_EQ(fields.done().error().message(),
            "f: hots: is not a known key, expected one of hosts; did you mean hosts?");
}

TEST(FieldsTest, WhatIsNoTableIsAComplaint) {
  const Json list{1, 2};
  Fields fields(list, "f");
  EXPECT_EQ(fields.get<std::int64_t>("a", Form::integer(0, 9)), 0);
  EXPECT_EQ(fields.done().error().message(), "f: is [1,2], expected a table of keys");
}

TEST(ParseTest, JsonErrorsNameThePlace) {
  EXPECT_EQ(parse_json("{\n\"a\": }", "f").error().message().find("f: is not JSON: "), 0U);
  EXPECT_NE(parse_json("{\n\"a\": }", "f").error().message().find("line 2"), std::string::npos);
  EXPECT_EQ(parse_json(R"({"a":{"b":1,"b":2}})", "f").error().message(),
            "f: b: occurs twice in one object");
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":2}])", "f"));
}

TEST(ParseTest, TomlErrorsNameThePlace) {
  EXPECT_EQ(parse_toml("a = 1\nb = \n", "f").error().message().find("f: is not TOML: line 2"), 0U);
}

TEST(ParseTest, TomlHasLettersBeyondAsciiInQuotesAndComments) {
  const auto table = parse_toml("a = 'é\\'  # ü\nb = \"\\\"é\"\n'ö' = 1\n", "f");
  ASSERT_TRUE(table);
  EXPECT_EQ(*table, Json::parse(R"({"a":"é\\","b":"\"é","ö":1})"));
  const std::string complaint = "is not TOML: line 2: a non-ASCII letter, expected in quotes only";
  EXPECT_EQ(parse_toml("a = 1\né = 2\n", "f").error().message(), "f: " + complaint);
  EXPECT_EQ(parse_toml("a = 'x'\nb = 'y' é\n", "f").error().message(), "f: " + complaint);
}

RC_GTEST_PROP(ParseProperty, AnyPartsOfTomlAreReadOrRefused, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "a", "=", "1", ".", "[", "]", "{", "}", ",", "#", "'", "\"", "\"\"\"", "\'\'\'", "\\", "\n",
      "\r", " ", "é", "\u2028", "\u3000", "\uFEFF", "\x85", "\xff"));
  std::string text;
  for (const std::string& part : parts) {
    text += part;
  }
  const auto table = parse_toml(text, "f");
  const std::string message = table ? "" : table.error().message();
  RC_ASSERT(message.find('\n') == std::string::npos);
}

TEST(ParseTest, TomlValuesKeepTheirTypes) {
  const auto table = parse_toml(
      "a = 1\nb = 1.0\nc = true\nd = 'x'\ne = [1, 'y']\nf = 1979-05-27\ng = nan\n[h]\ni = 2\n",
      "f");
  ASSERT_TRUE(table);
  EXPECT_TRUE((*table)["g"].is_number_float());
  Json others = *table;
  others.erase("g");
  EXPECT_EQ(others, Json::parse(R"({"a":1,"b":1.0,"c":true,"d":"x","e":[1,"y"],"f":"1979-05-27",
                                    "h":{"i":2}})"));
  EXPECT_TRUE(others["a"].is_number_integer());
  EXPECT_TRUE(others["b"].is_number_float());
}

}  // namespace
}  // namespace sluice
