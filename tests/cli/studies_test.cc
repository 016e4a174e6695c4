// The studies in experiments/, and the page that shows their results.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/program.h"
#include "formats/document.h"
#include "formats/study.h"
#include "support/command.h"
#include "support/short_training.h"
#include "support/skip.h"
#include "support/source_reader.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> study_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSourceRoot / "experiments")) {
    if (entry.path().extension() == ".toml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

std::string file_of(const std::string& study) {
  return (kSourceRoot / "experiments" / (study + ".toml")).string();
}

class CliStudiesTest : public testing::TestWithParam<std::string> {};

// How long all of them take together is in docs/studies.md.
TEST_P(CliStudiesTest, RunsItsQuickForm) {
  const bool trains = parse_toml(*read_file(file_of(GetParam())), "")->value("train", false);
  if (trains && !kHasModels) {
    SKIP_AS_INAPPLICABLE("there are no models without LibTorch");
  }
  const TemporaryFolder folder;
  const Outcome outcome =
      sluice("study " + GetParam() + " --quick --run study --log-level warn", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(read_study(file_of(GetParam()))->title));
  EXPECT_THAT(outcome.out, HasSubstr("data and pictures in study"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "study/sweep.csv"));
}

// Every figure is in the data that come with Sluice, and the pictures of the page are theirs.
TEST_P(CliStudiesTest, HasItsFiguresAndPicturesInItsData) {
  const TemporaryFolder folder;
  const Outcome outcome =
      sluice("study " + GetParam() + " --recorded --run pictures --json", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  for (const json& figure : report.at("figures")) {
    EXPECT_TRUE(figure.contains("here")) << figure;
  }
  const auto study = read_study(file_of(GetParam()));
  ASSERT_TRUE(study) << study.error().message();
  std::vector<std::string> pictures;
  std::ranges::transform(study->pictures, std::back_inserter(pictures), &StudyPicture::name);
  std::ranges::transform(study->contests, std::back_inserter(pictures), &StudyContest::name);
  for (const std::string& picture : pictures) {
    const std::string name = picture + ".svg";
    ASSERT_TRUE(std::filesystem::exists(folder.path() / "pictures" / name)) << name;
    // Not EXPECT_EQ, which would print both.
    EXPECT_TRUE(*read_file((kSourceRoot / "docs/studies" / name).string()) ==
                folder.read("pictures/" + name))
        << "sluice study " << GetParam() << " --recorded --run docs/studies draws it again";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CliStudiesTest, testing::ValuesIn(study_names()),
                         [](const auto& study) {
                           std::string name = study.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(CliStudies, AreListed) {
  const TemporaryFolder folder;
  const Outcome outcome = sluice("study --list", folder);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& name : study_names()) {
    EXPECT_THAT(outcome.out, HasSubstr("\n" + name + " "));
  }
}

TEST(CliStudies, AreFoundByNameOnly) {
  const TemporaryFolder folder;
  expect_refused(sluice("study", folder),
                 "study: expected the name of one study; --list shows them");
  expect_refused(
      sluice("study p3-scalling", folder),
      "study \"p3-scalling\": there is no such file and no study of that name; did you mean "
      "p3-scaling?");
  expect_refused(sluice("study p3-scaling mg-wfbp", folder),
                 "study: expected the name of one study");
  expect_refused(sluice("presets p3", folder), "p3: is not known to presets");
  folder.write("four.toml", "hosts = 4\n");
  expect_refused(sluice("study four.toml", folder), "four.toml: study: is missing");
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
