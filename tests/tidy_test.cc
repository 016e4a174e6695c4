// Reads the sources and documents of Sluice and fails on what does not belong there: functions and
// lines that are too long, calls that have a better one, words that have been given up.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/functions.h"
#include "support/skip.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Something that is as it is for a reason. One that is not needed any more fails.
struct Exception {
  std::string_view path;  // relative to the repository
  std::string_view what;  // the function or word
  std::string_view reason;
};

// What is found in a file, with what an exception would name.
struct Finding {
  std::string what;
  std::string text;
};

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
    {"src/drivers/mpi/mpi_world.cc", "atoll(", "reads what MPI itself has written"},
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

// ---- Words --------------------------------------------------------------------------------------

struct RetiredWord {
  std::string word;  // in small letters; found in any case, and as a part of a name
  std::string instead;
};

// docs/glossary.md has the words that we use. These were used before.
const std::vector<RetiredWord> kRetiredWords{
    {"crew", "process group"},
    {"muster", "join"},
    {"judge", "evaluator"},
    {"speaker", "leader"},
    {"party", "aggregation group"},
    {"vital", "heartbeat"},
    {"underway", "in flight"},
    {"strokes", "ping-pong"},
    {"stretch", "phase"},
    {"damaged", "corrupt"},
    {"piece", "chunk, fragment or work"},
    {"pieces", "chunks, fragments or work"},
};

const std::vector<Exception> kWordExceptions{};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Whether the word begins here and ends before another begins: crew in "crew", "Crew(", "my_crew"
// and "CrewMember", but not in "screw" or "crewed".
bool is_word_at(const std::string& line, std::size_t at, std::size_t size) {
  const bool capital = std::isupper(static_cast<unsigned char>(line[at])) != 0;
  const bool begins = at == 0 || !is_letter(line[at - 1]) || capital;
  const std::size_t end = at + size;
  const bool ends = end >= line.size() || !is_letter(line[end]) ||
                    std::isupper(static_cast<unsigned char>(line[end])) != 0;
  return begins && ends;
}

std::vector<Finding> retired_words_in(const std::string& text,
                                      const std::vector<RetiredWord>& retired) {
  std::vector<Finding> found;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string small = lines[i];
    std::ranges::transform(small, small.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& [word, instead] : retired) {
      for (std::size_t at = small.find(word); at != std::string::npos;
           at = small.find(word, at + 1)) {
        if (is_word_at(lines[i], at, word.size())) {
          found.push_back(
              {word, std::to_string(i + 1) + ": \"" + word + "\" is now \"" + instead + "\""});
        }
      }
    }
  }
  return found;
}

// ---- Lines of documents -------------------------------------------------------------------------

constexpr std::size_t kMaxColumns = 120;

const std::vector<Exception> kWideDocuments{};

// Characters, not bytes.
std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Tables and what programs print cannot be broken.
std::vector<Finding> wide_lines_in(const std::string& text) {
  std::vector<Finding> found;
  const auto lines = lines_of(text);
  bool fenced = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    fenced = lines[i].starts_with("```") ? !fenced : fenced;
    if (!fenced && !lines[i].starts_with("|") && columns_of(lines[i]) > kMaxColumns) {
      found.push_back({"", std::to_string(i + 1) + ": has " + std::to_string(columns_of(lines[i])) +
                               " columns"});
    }
  }
  return found;
}

// ---- The tree -----------------------------------------------------------------------------------

// Holds what was found against the exceptions; tells those that nothing needs.
class Verdict {
 public:
  explicit Verdict(const std::vector<Exception>& exceptions)
      : exceptions_(exceptions), needed_(exceptions.size(), false) {}

  void add(const std::string& path, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const auto exception = std::ranges::find_if(exceptions_, [&](const Exception& e) {
        return e.path == path && e.what == finding.what;
      });
      if (exception == exceptions_.end()) {
        breaches_.push_back(path + ":" + finding.text);
      } else {
        needed_[static_cast<std::size_t>(exception - exceptions_.begin())] = true;
      }
    }
  }

  std::vector<std::string> breaches() const {
    std::vector<std::string> all = breaches_;
    for (std::size_t e = 0; e < exceptions_.size(); ++e) {
      if (!needed_[e]) {
        all.push_back(std::string(exceptions_[e].path) + ": needs no exception any more");
      }
    }
    return all;
  }

 private:
  const std::vector<Exception>& exceptions_;
  std::vector<bool> needed_;
  std::vector<std::string> breaches_;
};

// Of the folders with code.
std::vector<Source> all_code() {
  std::vector<Source> all;
  for (const std::string folder : {"src", "include", "tests", "bench", "examples"}) {
    for (Source& source : sources_under(kSourceRoot / folder)) {
      all.push_back({folder + "/" + source.path, std::move(source.text)});
    }
  }
  return all;
}

std::vector<Source> all_documents() {
  std::vector<Source> all{{"README.md", text_of(kSourceRoot / "README.md")}};
  for (const std::string folder : {"docs", "profiles", "examples"}) {
    for (Source& source : sources_under(kSourceRoot / folder, {".md"})) {
      all.push_back({folder + "/" + source.path, std::move(source.text)});
    }
  }
  return all;
}

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

TEST(TidyTest, RetiredWordsStayAway) {
  Verdict verdict(kWordExceptions);
  for (const auto& sources : {all_code(), all_documents()}) {
    for (const Source& source : sources) {
      if (source.path != "tests/tidy_test.cc") {
        verdict.add(source.path, retired_words_in(source.text, kRetiredWords));
      }
    }
  }
  EXPECT_THAT(verdict.breaches(), IsEmpty());
}

TEST(TidyTest, LinesOfDocumentsStayShort) {
  Verdict verdict(kWideDocuments);
  for (const Source& document : all_documents()) {
    verdict.add(document.path, wide_lines_in(document.text));
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

std::vector<std::string> texts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    texts.push_back(finding.text);
  }
  return texts;
}

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

TEST(TidyCheckerTest, FindsRetiredWordsAsWordsAndInNames) {
  const std::vector<RetiredWord> retired{{"crew", "process group"}};
  for (const char* line :
       {"the crew", "Crew crew_;", "join_crew()", "class CrewMember", "MyCrew"}) {
    EXPECT_FALSE(retired_words_in(line, retired).empty()) << line;
  }
  for (const char* line : {"a screw", "crewed", "nothing"}) {
    EXPECT_THAT(retired_words_in(line, retired), IsEmpty()) << line;
  }
  EXPECT_THAT(texts_of(retired_words_in("a\nthe crew", retired)),
              ElementsAre("2: \"crew\" is now \"process group\""));
}

TEST(TidyCheckerTest, MeasuresLinesThatCanBeBroken) {
  const std::string wide(121, 'x');
  EXPECT_THAT(texts_of(wide_lines_in("a\n" + wide)), ElementsAre("2: has 121 columns"));
  EXPECT_THAT(wide_lines_in(wide.substr(1)), IsEmpty());
  EXPECT_THAT(wide_lines_in("|" + wide + "|\n```\n" + wide + "\n```\n"), IsEmpty());
  std::string umlauts;
  for (int i = 0; i < 120; ++i) {
    umlauts += "\u00e4";
  }
  EXPECT_THAT(wide_lines_in(umlauts), IsEmpty());
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
