// Reads the sources and documents of Sluice and fails on words that have been given up and on lines
// of documents that are too long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

#include "support/findings.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tidy::all_code;
using tidy::all_documents;
using tidy::Exception;
using tidy::Finding;
using tidy::texts_of;
using tidy::Verdict;

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

TEST(TidyTest, RetiredWordsStayAway) {
  Verdict verdict(kWordExceptions);
  for (const auto& sources : {all_code(), all_documents()}) {
    for (const Source& source : sources) {
      if (source.path != "tests/words_test.cc") {
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

// From here on: the checkers themselves, on made-up texts.

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

}  // namespace
}  // namespace sluice
