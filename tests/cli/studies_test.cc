// The configuration files in experiments/, and the page that shows their results.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "base/file.h"
#include "cli/program.h"
#include "support/command.h"
#include "support/skip.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

TEST(CliStudies, EachRunsWithTheFirstValueOfEachAxis) {
  static const std::regex kSweep("sweep = \"(.*)\"\n");
  int studies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSourceRoot / "experiments")) {
    std::smatch sweep;
    const std::string text = entry.is_regular_file() ? *read_file(entry.path().string()) : "";
    if (!std::regex_search(text, sweep, kSweep)) {
      continue;
    }
    ++studies;
    const std::string first = std::regex_replace(sweep.str(1), std::regex(",[^ ]*"), "");
    const TemporaryFolder folder;
    const Outcome outcome = sluice("simulate --config '" + entry.path().string() + "' --sweep '" +
                                       first + "' --iterations 1 --run study",
                                   folder);
    EXPECT_EQ(outcome.code, 0) << entry.path() << outcome.err;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "study/sweep.csv")) << entry.path();
  }
  EXPECT_EQ(studies, 5);
}

TEST(CliStudies, ThePageHasTheTablesOfTheirData) {
  const TemporaryFolder folder;
  if (run_command("python3 -c 'import csv'", folder).code != 0) {
    SKIP_FOR_LACK("there is no Python");
  }
  const Outcome outcome =
      run_command("'" + (kSourceRoot / "experiments/tables").string() + "' --check", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace sluice
