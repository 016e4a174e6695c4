#include "report/page/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(RunDataTest, ReadsSettingsWithTheirOrigins) {
  EXPECT_THAT(settings_from("preset = \"p3\"  # from flag\nlr = 0.05\n\n# run = \"a  # b\"  # from "
                            "flag\n# a remark\n"),
              ElementsAre(RunSetting{"preset", "\"p3\"", "from flag"}, RunSetting{"lr", "0.05", ""},
                          RunSetting{"run", "\"a  # b\"", "from flag"}));
}

TEST(RunDataTest, ReadsStepsAndEvaluations) {
  RunData run;
  ASSERT_TRUE(read_metrics(R"({"step":1,"epoch":1,"loss":2.5,"samples":64,"time_s":0.5}
{"step":2,"epoch":1,"loss":"NaN","samples":128,"time_s":1}
{"step":2,"epoch":0.5,"test_loss":"Infinity","test_accuracy":0.75,"time_s":1.5}
{"iteration":4,"start_us":1,"length_us":2}
)",
                           run));
  ASSERT_THAT(run.steps, SizeIs(2));
  EXPECT_EQ(run.steps[0].loss, 2.5);
  EXPECT_EQ(run.steps[0].samples, 64);
  EXPECT_TRUE(std::isnan(*run.steps[1].loss));
  ASSERT_THAT(run.evaluations, SizeIs(1));
  EXPECT_EQ(run.evaluations[0].accuracy, 0.75);
  EXPECT_TRUE(std::isinf(run.evaluations[0].loss));
  EXPECT_EQ(run.evaluations[0].seconds, 1.5);
}

TEST(RunDataTest, ReadsTheLinksOfALab) {
  const auto links = links_from("time_s,host,rx_bytes,tx_bytes\n0.5,1,20,30\n");
  ASSERT_TRUE(links);
  ASSERT_THAT(*links, SizeIs(1));
  EXPECT_EQ(links->front().host, 1U);
  EXPECT_EQ(links->front().sent, 30);
  const auto bad = links_from("time_s,host,rx_bytes,tx_bytes\n0.5,1,20,30\n0.6,x\n");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message(), HasSubstr("line 3"));
}

TEST(RunDataTest, ReadsAFolderWithASummaryOnly) {
  const TemporaryFolder folder;
  folder.write("summary.json", R"({"preset": "p3", "network": {"gbps": 2}, "loss": "NaN"})");
  const auto run = read_run(folder.path() / ".");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->name, folder.path().filename());
  EXPECT_EQ(run->text({"preset"}), "p3");
  EXPECT_EQ(run->text({"network"}), "");
  EXPECT_EQ(run->number({"network", "gbps"}), 2);
  EXPECT_TRUE(std::isnan(*run->number({"loss"})));
  EXPECT_FALSE(run->number({"preset", "gbps"}));
  EXPECT_FALSE(run->number({"network", "startup_us"}));
}

struct BadFile {
  const char* name;
  const char* text;
  const char* complaint;
};

TEST(RunDataTest, NamesTheFileThatIsWrong) {
  for (const auto& [name, text, complaint] :
       {BadFile{"summary.json", "{", "summary.json"},
        BadFile{"summary.json", "[]", "not the summary"},
        BadFile{"metrics.jsonl", "{}\nx\n", "metrics.jsonl: line 2"},
        BadFile{"metrics.jsonl", "3\n", "metrics.jsonl: line 1: is not an object"},
        BadFile{"utilisation.csv", "t\n1,2\n", "utilisation.csv: line 2"},
        BadFile{"timeline.json", "{}", "timeline.json: is not a time line"}}) {
    const TemporaryFolder folder;
    folder.write("summary.json", "{}");
    folder.write(name, text);
    const auto run = read_run(folder.path());
    ASSERT_FALSE(run) << name << " " << text;
    EXPECT_THAT(run.error().message(), HasSubstr(complaint));
  }
  const TemporaryFolder empty;
  EXPECT_THAT(read_run(empty.path()).error().message(), HasSubstr("has no summary.json"));
  EXPECT_THAT(read_run(empty.path() / "none").error().message(), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace sluice
