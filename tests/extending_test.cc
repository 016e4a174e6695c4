// docs/extending.md shows the files of tests/extending/, which are compiled and run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/console_blocks.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

struct ShownFile {
  std::string path;  // relative to the repository
  std::vector<std::string> lines;
};

// Blocks below a comment that names a file: <!-- file: PATH -->.
std::vector<ShownFile> shown_files(const std::vector<std::string>& lines) {
  std::vector<ShownFile> files;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string path = said_in_comment(lines[i], "file");
    if (path.empty()) {
      continue;
    }
    EXPECT_TRUE(lines[i + 1].starts_with("```")) << "line " << i + 2 << " begins a block";
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(i) + 2;
    files.push_back({path, {begin, std::find(begin, lines.end(), "```")}});
  }
  return files;
}

TEST(Extending, TheDocumentShowsTheFilesThatAreTested) {
  std::set<std::string> shown;
  for (const ShownFile& file : shown_files(lines_of(text_of(kSourceRoot / "docs/extending.md")))) {
    SCOPED_TRACE(file.path);
    EXPECT_EQ(file.lines, lines_of(text_of(kSourceRoot / file.path)));
    shown.insert(file.path);
  }
  std::set<std::string> tested;
  for (const auto& entry : std::filesystem::directory_iterator(kSourceRoot / "tests/extending")) {
    if (entry.path().filename() != "CMakeLists.txt") {
      tested.insert(entry.path().lexically_relative(kSourceRoot).string());
    }
  }
  EXPECT_EQ(shown, tested);
}

TEST(Extending, FindsTheBlocksThatNameAFile) {
  const auto files = shown_files({"<!-- file: a.h -->", "```cpp", "int a;", "", "```", "```cpp",
                                  "int other;", "```", "<!-- file: b.patch -->", "```diff", "```"});
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "a.h");
  EXPECT_EQ(files[0].lines, (std::vector<std::string>{"int a;", ""}));
  EXPECT_TRUE(files[1].lines.empty());
}

}  // namespace
}  // namespace sluice
