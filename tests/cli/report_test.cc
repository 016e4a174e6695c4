// sluice report, and the reports at the end of runs. A page is also opened in Chromium.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CliReportTest : public testing::Test {
 protected:
  CliReportTest() {
    folder_.write("toy.json", R"({"name": "toy", "batch": 32, "layers": [
      {"name": "conv <1>", "params": 40000, "forward_us": 900, "backward_us": 1800},
      {"name": "fc", "params": 1200000, "forward_us": 300, "backward_us": 600}]})");
    folder_.write("two.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  }
  Outcome simulate(const std::string& more) {
    return sluice("simulate --profile toy.json --cluster two.toml " + more, folder_);
  }
  std::string path(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(CliReportTest, ARunEndsWithOne) {
  EXPECT_THAT(simulate("--run mine").out, HasSubstr("report in mine/report.html\n"));
  const std::string page = folder_.read("mine/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("the links are full"), HasSubstr("conv &lt;1&gt;"),
                          Not(HasSubstr("conv <1>"))));
  std::filesystem::remove(path("mine/report.html"));
  const Outcome again = sluice("report mine", folder_);
  EXPECT_EQ(again.out, "report in mine/report.html\n");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(folder_.read("mine/report.html"), page);
}

TEST_F(CliReportTest, SeveralRunsAreCompared) {
  simulate("--run a");
  simulate("--run b --preset kvstore");
  EXPECT_EQ(sluice("report a b", folder_).out, "report in a/comparison.html\n");
  EXPECT_THAT(folder_.read("a/comparison.html"), AllOf(HasSubstr("a: "), HasSubstr("b: ")));
  const Outcome named = sluice("report a b --out both.html --json", folder_);
  EXPECT_EQ(json::parse(named.out), (json{{"report", "both.html"}}));
  EXPECT_EQ(folder_.read("both.html"), folder_.read("a/comparison.html"));
}

TEST_F(CliReportTest, RefusesWhatIsNoRun) {
  expect_refused(sluice("report", folder_), "report: expected the folder of a run");
  expect_refused(sluice("report none", folder_), "report: none: is not a folder");
  expect_refused(sluice("report .", folder_), "report: .: has no summary.json");
  folder_.write("summary.json", "{");
  expect_refused(sluice("report .", folder_), "report: ./summary.json");
}

// No file may be as long as the report, which is the longest of the run.
TEST_F(CliReportTest, ARunDoesNotFailForIt) {
  const std::string command =
      "simulate --profile toy.json --cluster two.toml --log-level warn --run ";
  ASSERT_EQ(sluice(command + "free", folder_).code, 0);
  const auto kib = std::filesystem::file_size(path("free/report.html")) / 1024;
  for (const char* other : {"timeline.json", "summary.json", "profile.json"}) {
    ASSERT_LT(std::filesystem::file_size(path(std::string("free/") + other)), 1024 * kib);
  }
  const Outcome limited = run_command(
      fmt::format("ulimit -f {}; trap '' XFSZ; '{}' {} limited", kib, SLUICE_BINARY, command),
      folder_);
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_THAT(limited.err, HasSubstr("the report of the run cannot be written"));
  EXPECT_THAT(limited.out, HasSubstr("report in limited\n"));
  EXPECT_FALSE(std::filesystem::exists(path("limited/report.html")));
  EXPECT_TRUE(std::filesystem::exists(path("limited/summary.json")));
}

// What Chromium shows of a page, in light and dark and on a phone.
class CliReportPageTest : public CliReportTest {
 protected:
  json look(const std::string& page) {
    const Outcome outcome = run_command(
        fmt::format("node '{}/tests/page/look.mjs' '{}'", SLUICE_SOURCE_DIR, path(page)), folder_);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  static std::string missing() {
    if (!std::filesystem::exists("/usr/bin/chromium")) {
      return "there is no Chromium";
    }
    const std::string modules = SLUICE_SOURCE_DIR "/tests/page/node_modules/playwright-core";
    if (std::system("node --version >/dev/null 2>&1") != 0 || !std::filesystem::exists(modules)) {
      return "there is no playwright-core; scripts/packages test installs it";
    }
    return "";
  }
  static void expect_sound(const json& seen) {
    for (const json& view : seen) {
      EXPECT_THAT(view.at("complaints"), IsEmpty());
      EXPECT_THAT(view.at("requests"), IsEmpty());
      EXPECT_THAT(view.at("overflows"), IsEmpty());
      EXPECT_EQ(view.at("scripts"), 0);
      EXPECT_EQ(view.at("named"), view.at("drawings"));
    }
    EXPECT_EQ(seen.at("phone").at("page_width"), 380);
    for (const char* key : {"background", "ink", "line_colour"}) {
      EXPECT_NE(seen.at("light").at(key), seen.at("dark").at(key)) << key;
    }
  }

  // Twelve steps and three evaluations, under a name that would break a careless page.
  std::string write_training() {
    const std::string name = "<b>it's \"mine\" & yours";
    std::filesystem::create_directories(path(name));
    folder_.write(name + "/summary.json",
                  R"({"preset": "p3", "model": "lenet", "iteration_us": 1000, "iterations": 12,
        "breakdown": {"computation_us": 300, "communication_exposed_us": 500,
                      "global_aggregation_wait_us": 200}})");
    std::string metrics;
    for (int i = 1; i <= 12; ++i) {
      metrics +=
          json{{"step", i}, {"loss", 3.0 / i}, {"samples", 8 * i}, {"time_s", 0.1 * i}}.dump() +
          "\n";
      if (i % 4 == 0) {
        metrics += json{{"step", i},
                        {"epoch", i / 4},
                        {"test_loss", 2.0 / i},
                        {"test_accuracy", i / 24.0},
                        {"time_s", 0.1 * i}}
                       .dump() +
                   "\n";
      }
    }
    folder_.write(name + "/metrics.jsonl", metrics);
    return name;
  }
};

TEST_F(CliReportPageTest, ChromiumDrawsASimulation) {
  if (const std::string lack = missing(); !lack.empty()) {
    SKIP_FOR_LACK(lack);
  }
  ASSERT_EQ(simulate("--run mine").code, 0);
  const json seen = look("mine/report.html");
  ASSERT_FALSE(seen.is_null());
  expect_sound(seen);
  const json& light = seen.at("light");
  EXPECT_EQ(light.at("title"), "mine");
  EXPECT_THAT(light.at("headings"),
              ElementsAre("What limits the run", "Time line", "Links", "What the mechanism did",
                          "Settings", "Machine and versions"));
  EXPECT_EQ(light.at("drawings"), 4);  // breakdown, time line, links out and in
  EXPECT_THAT(light.at("lines"), ElementsAre(60, 60, 60, 60));  // two hosts, out and in
  EXPECT_GT(light.at("bars"), 20);
}

TEST_F(CliReportPageTest, ChromiumDrawsATraining) {
  if (const std::string lack = missing(); !lack.empty()) {
    SKIP_FOR_LACK(lack);
  }
  const std::string name = write_training();
  const Outcome written =
      sluice("report '" + path("<b>it'\\''s \"mine\" & yours") + "' --out page.html", folder_);
  ASSERT_EQ(written.code, 0) << written.err;
  const json seen = look("page.html");
  ASSERT_FALSE(seen.is_null());
  expect_sound(seen);
  const json& light = seen.at("light");
  EXPECT_EQ(light.at("title"), name);
  EXPECT_THAT(light.at("lines"), ElementsAre(12, 12, 3, 3));
  EXPECT_EQ(light.at("bars"), 3);
  EXPECT_THAT(light.at("captions"), Contains("Test accuracy by epoch"));
  EXPECT_THAT(light.at("statement"), ElementsAre("Communication limits this run."));
}

}  // namespace
}  // namespace sluice
