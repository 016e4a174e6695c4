// Reads the sources of Sluice and fails on functions that are too long and on calls that have a
// better replacement.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "support/command.h"
#include "support/findings.h"
#include "support/functions.h"
#include "support/skip.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tidy::all_code;
using tidy::Exception;
using tidy::Finding;
using tidy::texts_of;
using tidy::Verdict;

// ---- Functions ----------------------------------------------------------------------------------

constexpr std::size_t kMaxFunctionLines = 70;

const std::vector<Exception> kLongFunctions{
    {"src/torch/models/table.cc", "model_table", "a table, one model a line"},
};

std::vector<Finding> long_functions(const std::string& text) {
  std::vector<Finding> found;
  for (const Function& function : functions_in(text)) {
    if (function.lines > kMaxFunctionLines) {
      found.push_back({function.name, std::to_string(function.first_line) + ": " + function.name +
                                          " has " + std::to_string(function.lines) + " lines"});
    }
  }
  return found;
}

// ---- Calls --------------------------------------------------------------------------------------

struct BannedCall {
  std::vector<std::string> names;  // one that ends with a parenthesis only where it is called
  std::string instead;
  std::string only_in = "";     // paths that begin so
  std::string allowed_in = "";  // likewise
};

const std::vector<BannedCall> kBannedCalls{
    {{"rand(", "srand(", "drand48("}, "base/random.h"},
    {{"strtok(", "strtok_r("}, "std::string_view::find"},
    {{"sprintf(", "vsprintf(", "strcpy(", "strcat(", "gets("}, "fmt::format"},
    {{"atoi(", "atol(", "atoll(", "atof("}, "base/text.h, which tells what is wrong", "src/"},
    {{"std::endl"}, "\"\\n\", with std::flush where it must be out", "src/"},
    {{"std::regex", "std::smatch"}, "a loop: a regex is slow", "src/"},
    {{"exit(", "quick_exit("},
     "an exception or a result: only cli ends the program",
     "src/",
     "src/cli/"},
    {{"std::cout", "std::cerr", "printf(", "fprintf("},
     "the stream that was passed in: only cli prints",
     "src/",
     "src/cli/"},
    {{"std::bind"}, "a lambda"},
    {{"NULL"}, "nullptr"},
    {{"typedef"}, "using"},
    {{"goto"}, "a function that returns"},
    {{"GTEST_SKIP"}, "SKIP_FOR_LACK of support/skip.h", "", "tests/support/skip.h"},
};

const std::vector<Exception> kCallExceptions{
    {"src/drivers/mpi/mpi_long_messages.cc", "atoll(", "reads what MPI itself has written"},
};

bool is_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// As a name of its own, not as a member of something or a part of another name.
bool names(const std::string& line, const std::string& name) {
  for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    const char before = at > 0 ? line[at - 1] : ' ';
    const std::size_t end = at + name.size();
    const bool longer = name.back() != '(' && end < line.size() && is_in_name(line[end]);
    const bool qualified = before == ':' && !line.substr(0, at).ends_with("std::");
    if (!is_in_name(before) && before != '.' && before != '>' && !qualified && !longer) {
      return true;
    }
  }
  return false;
}

std::vector<Finding> banned_calls_in(const std::string& path, const std::string& text) {
  std::vector<Finding> found;
  const auto lines = lines_of(code_only(text));
  for (const BannedCall& call : kBannedCalls) {
    const bool allowed = !call.allowed_in.empty() && path.starts_with(call.allowed_in);
    if (allowed || !path.starts_with(call.only_in)) {
      continue;
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const std::string& name : call.names) {
        if (names(lines[i], name)) {
          found.push_back({name, std::to_string(i + 1) + ": " + name + "; take " + call.instead});
        }
      }
    }
  }
  return found;
}

// ---- The tree -----------------------------------------------------------------------------------

TEST(TidyTest, FunctionsStayShort) {
  Verdict verdict(kLongFunctions);
  for (const Source& source : all_code()) {
    verdict.add(source.path, long_functions(source.text));
  }
  EXPECT_THAT(verdict.breaches(), IsEmpty());
}

TEST(TidyTest, CallsAreTheBestThereAre) {
  Verdict verdict(kCallExceptions);
  for (const Source& source : all_code()) {
    if (source.path != "tests/tidy_test.cc") {
      verdict.add(source.path, banned_calls_in(source.path, source.text));
    }
  }
  EXPECT_THAT(verdict.breaches(), IsEmpty());
}

// scripts/mutate tells which tests can fail; what it puts in must be there to be replaced.
TEST(TidyTest, MutationsApply) {
  const TemporaryFolder folder;
  if (run_command("python3 -c 'import tomllib'", folder).code != 0) {
    SKIP_FOR_LACK("there is no Python from 3.11 on");
  }
  const Outcome outcome =
      run_command("'" + (kSourceRoot / "scripts/mutate").string() + "' --check", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(" mutations apply"));
}

// From here on: the checkers themselves, on made-up texts.

std::string function_of(std::size_t lines) {
  std::string text = "namespace a {\nint f(int x) {\n";
  for (std::size_t i = 2; i < lines; ++i) {
    text += "  if (x) { g(\"}\"); }\n";
  }
  return text + "}\n}\n";
}

TEST(TidyCheckerTest, CountsTheLinesOfAFunction) {
  EXPECT_THAT(long_functions(function_of(70)), IsEmpty());
  EXPECT_THAT(texts_of(long_functions(function_of(71))), ElementsAre("2: f has 71 lines"));
}

TEST(TidyCheckerTest, KnowsFunctionsFromTypesAndInitialisers) {
  const auto functions = functions_in(
      "struct A {\n  A() : b_{1}, c_(2) {\n    d();\n  }\n  int b_{0};\n};\n"
      "template <class T>\nvoid A::e(T t) const {\n}\n"
      "#define M(x) {\nenum class F { kA };\nTEST(S, T) {\n  const auto l = [] {\n  };\n}\n");
  ASSERT_EQ(functions.size(), 3U);
  EXPECT_EQ(functions[0].name, "A");
  EXPECT_EQ(functions[0].lines, 3U);
  EXPECT_EQ(functions[1].name, "A::e");
  EXPECT_EQ(functions[2].name, "TEST");
  EXPECT_EQ(functions[2].lines, 4U);
}

TEST(TidyCheckerTest, FindsEveryBannedCall) {
  for (const char* line :
       {"x = rand() % 6;", "strtok(s, d);", "sprintf(a, b);", "n = atoi(s);", "out << std::endl;",
        "std::regex r;", "std::exit(1);", " exit(1);", "std::bind(f);", "std::cout << 1;",
        "printf(a);", "p = NULL;", "typedef int I;", "goto end;", "GTEST_SKIP() << why;"}) {
    EXPECT_EQ(banned_calls_in("src/sim/a.cc", line).size(), 1U) << line;
  }
  EXPECT_THAT(texts_of(banned_calls_in("src/a.cc", "int a;\nx = rand();")),
              ElementsAre("2: rand(; take base/random.h"));
}

TEST(TidyCheckerTest, LetsCallsStandWhereTheyBelong) {
  EXPECT_THAT(banned_calls_in("src/cli/a.cc", "std::exit(2);"), IsEmpty());
  EXPECT_THAT(banned_calls_in("tests/a.cc", "std::regex r;"), IsEmpty());
  EXPECT_THAT(banned_calls_in("tests/support/skip.h", "GTEST_SKIP() << why;"), IsEmpty());
  EXPECT_THAT(banned_calls_in("src/a.cc", "app.exit(e); _exit(1); brand(); on_exit(); // rand()"),
              IsEmpty());
}

TEST(TidyCheckerTest, HoldsFindingsAgainstExceptions) {
  const std::vector<Exception> exceptions{{"a.cc", "f", "a table"}, {"b.cc", "g", "a table"}};
  Verdict verdict(exceptions);
  verdict.add("a.cc", {{"f", "1: f"}, {"h", "9: h"}});
  EXPECT_THAT(verdict.breaches(), ElementsAre("a.cc:9: h", HasSubstr("b.cc: needs no")));
}

void lacks_mpi() { SKIP_FOR_LACK("there is no mpirun"); }

TEST(SkipTest, FailsWhereNothingMayBeLacking) {
  const char* before = std::getenv("CI");
  const std::string kept = before != nullptr ? before : "";
  setenv("CI", "true", 1);
  EXPECT_TRUE(has_everything());
  EXPECT_FATAL_FAILURE(lacks_mpi(), "there is no mpirun");
  setenv("CI", "false", 1);
  EXPECT_FALSE(has_everything());
  setenv("CI", kept.c_str(), 1);
}

}  // namespace
}  // namespace sluice
