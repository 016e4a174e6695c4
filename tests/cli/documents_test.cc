// Runs the console blocks of the documents and compares the output. If the output of the program
// changes, this puts the new text into the documents:
//
//   SLUICE_REWRITE_DOCUMENTS=1 build/sluice_tests --gtest_filter='*Documents*'
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/command.h"
#include "support/console_blocks.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

bool rewrites() { return std::getenv("SLUICE_REWRITE_DOCUMENTS") != nullptr; }

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  return lines_of(text_of(path));
}

void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  std::ofstream file(path);
  for (const std::string& line : lines) {
    file << line << "\n";
  }
}

// A folder in which `sluice` is the program and the repository's data is where the documents expect
// it.
class Console {
 public:
  Console() {
    std::filesystem::create_directory(folder_.path() / ".bin");
    std::filesystem::create_symlink(SLUICE_BINARY, folder_.path() / ".bin/sluice");
    for (const char* name : {"profiles", "examples"}) {
      std::filesystem::create_symlink(kSourceRoot / name, folder_.path() / name);
    }
  }

  // The first time that a file is shown, its text is written to the file.
  bool defines_file(const ShownCommand& command) const {
    if (!command.command.starts_with("cat ")) {
      return false;
    }
    const auto path = folder_.path() / command.command.substr(4);
    if (!std::filesystem::exists(path)) {
      write_lines(path, command.shown);
    }
    return true;
  }

  Outcome run(const std::string& command) const {
    return run_command("PATH=\"$PWD/.bin:$PATH\"; " + command, folder_);
  }

  bool has_models() const { return run("sluice models").code == 0; }

 private:
  TemporaryFolder folder_;
};

struct Document {
  std::filesystem::path path;
  std::vector<std::string> lines;
};

// Replaces the shown lines; returns by how many lines the document has grown.
std::ptrdiff_t replace_shown(Document& document, const ShownCommand& command, std::ptrdiff_t grown,
                             const std::vector<std::string>& lines) {
  const auto begin =
      document.lines.begin() + static_cast<std::ptrdiff_t>(command.first_shown) + grown;
  const auto shown = static_cast<std::ptrdiff_t>(command.shown.size());
  document.lines.insert(document.lines.erase(begin, begin + shown), lines.begin(), lines.end());
  return static_cast<std::ptrdiff_t>(lines.size()) - shown;
}

class Documents : public ::testing::TestWithParam<const char*> {};

// A command that shows nothing must succeed; the output of a failing one is on standard error.
TEST_P(Documents, ShowWhatTheProgramPrints) {
  Document document{kSourceRoot / GetParam(), read_lines(kSourceRoot / GetParam())};
  const Console console;
  const bool has_models = console.has_models();
  std::ptrdiff_t grown = 0;
  for (const ConsoleBlock& block : console_blocks(document.lines)) {
    if (!block.not_run.empty() || (block.needs_models && !has_models)) {
      continue;
    }
    for (const ShownCommand& command : block.commands) {
      SCOPED_TRACE(std::string(GetParam()) + ":" + std::to_string(block.line) + ": $ " +
                   command.command);
      if (console.defines_file(command)) {
        continue;
      }
      const Outcome outcome = console.run(command.command);
      const auto lines = lines_of(outcome.code == 0 ? outcome.out : outcome.err);
      if (command.shown.empty()) {
        EXPECT_EQ(outcome.code, 0) << outcome.err;
      } else if (!rewrites()) {
        EXPECT_TRUE(is_as_shown(command.shown, lines))
            << "it prints\n"
            << ::testing::PrintToString(lines)
            << "\nif that is right, SLUICE_REWRITE_DOCUMENTS=1 with this test rewrites the block";
      } else if (!is_as_shown(command.shown, lines)) {
        ASSERT_FALSE(lines.empty()) << "it no longer prints anything";
        grown += replace_shown(document, command, grown, lines);
      }
    }
  }
  if (rewrites()) {
    write_lines(document.path, document.lines);
  }
}

INSTANTIATE_TEST_SUITE_P(Cli, Documents,
                         ::testing::Values("README.md", "docs/guide.md", "docs/simulator.md",
                                           "docs/studies.md"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// "| `p3` | ... | 9.15 ms |" in the README, with the files that are shown above it.
TEST(CliDocumentsTable, ShowsWhatEachPresetTakes) {
  static const std::regex kRow(R"(^\| `(\S+)` \|.*\| (\d+\.\d\d) ms \|$)");
  auto lines = read_lines(kSourceRoot / "README.md");
  const Console console;
  for (const ConsoleBlock& block : console_blocks(lines)) {
    for (const ShownCommand& command : block.commands) {
      console.defines_file(command);
    }
  }
  int rows = 0;
  for (std::string& line : lines) {
    std::smatch row;
    if (!std::regex_match(line, row, kRow)) {
      continue;
    }
    ++rows;
    const Outcome outcome = console.run("sluice simulate --json --preset " + row.str(1) +
                                        " --profile toy.json --cluster four.toml");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const double us = nlohmann::json::parse(outcome.out).at("iteration_us");
    std::ostringstream ms;
    ms << std::fixed << std::setprecision(2) << us / 1000;
    if (rewrites()) {
      line.replace(static_cast<std::size_t>(row.position(2)), row.str(2).size(), ms.str());
    } else {
      EXPECT_EQ(row.str(2), ms.str()) << row.str(1);
    }
  }
  EXPECT_GE(rows, 5) << "the table was not found";
  if (rewrites()) {
    write_lines(kSourceRoot / "README.md", lines);
  }
}

// The IDs in a cell, such as "ALG-2, 3, 4" or "EXP-3 ... EXP-8".
std::vector<std::string> ids_in(const std::string& cell) {
  static const std::regex kId(R"(([A-Z]+-)?(\d+))");
  std::vector<std::string> ids;
  std::string kind;
  int last = 0;
  std::size_t end = 0;
  for (std::sregex_iterator id(cell.begin(), cell.end(), kId), none; id != none; ++id) {
    kind = id->str(1).empty() ? kind : id->str(1);
    const int number = std::stoi(id->str(2));
    const auto at = static_cast<std::size_t>(id->position());
    const bool range = cell.substr(end, at - end).find("...") != std::string::npos;
    for (int n = range ? last + 1 : number; n <= number; ++n) {
      ids.push_back(kind + std::to_string(n));
    }
    last = number;
    end = at + static_cast<std::size_t>(id->length());
  }
  return ids;
}

TEST(DocumentsTest, ExplainEveryRequirementThatTheReadmeNames) {
  static const std::regex kRow(R"(^\| ([A-Z]+-\d+[^|]*) \|.*)");
  std::vector<std::string> explained;
  std::smatch row;
  for (const std::string& line : read_lines(kSourceRoot / "docs/requirements.md")) {
    if (std::regex_match(line, row, kRow)) {
      explained.push_back(row.str(1));
    }
  }
  std::vector<std::string> named;
  for (const std::string& line : read_lines(kSourceRoot / "README.md")) {
    if (std::regex_match(line, row, kRow)) {
      std::ranges::copy(ids_in(row.str(1)), std::back_inserter(named));
    }
  }
  EXPECT_GE(named.size(), 40U) << "the table was not found";
  EXPECT_THAT(explained, ::testing::UnorderedElementsAreArray(named));
}

TEST(DocumentsTest, ReadListsAndRangesOfRequirements) {
  using ::testing::ElementsAre;
  EXPECT_THAT(ids_in("ALG-1"), ElementsAre("ALG-1"));
  EXPECT_THAT(ids_in("ALG-2, 3, 10"), ElementsAre("ALG-2", "ALG-3", "ALG-10"));
  EXPECT_THAT(ids_in("EXP-3 ... EXP-6"), ElementsAre("EXP-3", "EXP-4", "EXP-5", "EXP-6"));
}

// The rest tests the reader of blocks, on made-up documents.

TEST(ConsoleBlocks, HaveCommandsWithWhatTheyShow) {
  const auto blocks = console_blocks(lines_of(
      "text\n```console\n$ one \\\n    --more\na\nb\n$ two\n```\n```\n$ no console\n```\n"));
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].line, 2U);
  ASSERT_EQ(blocks[0].commands.size(), 2U);
  EXPECT_EQ(blocks[0].commands[0].command, "one \\\n    --more");
  EXPECT_THAT(blocks[0].commands[0].shown, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(blocks[0].commands[0].first_shown, 4U);
  EXPECT_TRUE(blocks[0].commands[1].shown.empty());
}

TEST(ConsoleBlocks, SayWhetherTheyAreRun) {
  const auto blocks =
      console_blocks(lines_of("<!-- not run: takes minutes -->\n```console\n```\n"
                              "<!-- needs: models -->\n```console\n```\n"
                              "<!-- other: words -->\n```console\n```\n"));
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].not_run, "takes minutes");
  EXPECT_FALSE(blocks[0].needs_models);
  EXPECT_EQ(blocks[1].not_run, "");
  EXPECT_TRUE(blocks[1].needs_models);
  EXPECT_EQ(blocks[2].not_run, "");
}

TEST(ConsoleBlocks, AreComparedLineByLine) {
  EXPECT_TRUE(is_as_shown({"a", "b"}, {"a", "b"}));
  EXPECT_FALSE(is_as_shown({"a", "b"}, {"a"}));
  EXPECT_FALSE(is_as_shown({"a"}, {"a", "b"}));
  EXPECT_FALSE(is_as_shown({"a", "b"}, {"a", "c"}));
  EXPECT_TRUE(is_as_shown({"a", "...", "d"}, {"a", "b", "c", "d"}));
  EXPECT_TRUE(is_as_shown({"...", "d"}, {"d"}));
  EXPECT_TRUE(is_as_shown({"a", "..."}, {"a", "b"}));
  EXPECT_FALSE(is_as_shown({"a", "...", "d"}, {"a", "b", "c"}));
}

TEST(ConsoleBlocks, AreRewrittenInPlace) {
  Document document{"", lines_of("```console\n$ one\na\n$ two\nb\nc\n```\nend\n")};
  const auto block = console_blocks(document.lines).at(0);
  const auto grown = replace_shown(document, block.commands[0], 0, {"x", "y", "z"});
  EXPECT_EQ(grown, 2);
  replace_shown(document, block.commands[1], grown, {"w"});
  EXPECT_THAT(document.lines, ::testing::ElementsAre("```console", "$ one", "x", "y", "z", "$ two",
                                                     "w", "```", "end"));
}

}  // namespace
}  // namespace sluice
