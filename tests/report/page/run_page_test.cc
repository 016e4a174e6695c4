#include "report/page/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "report/page/run_charts.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

RunData some_run(const std::string& name) {
  RunData run;
  run.name = name;
  run.summary = nlohmann::json::parse(R"({"preset": "p3", "model": "lenet", "workers": 4,
      "iteration_us": 1000, "iterations": 2, "clock": "virtual", "train_s": 2,
      "breakdown": {"computation_us": 300, "communication_exposed_us": 700},
      "by_host": [{"sent_bytes": 5e6, "egress_busy_s": 1.9, "ingress_busy_s": 1}],
      "mechanism": {"messages": 12, "bytes": 3000000, "overtakings_egress": 5, "hidden_share": 0.5,
                    "sent_by_kind": {"push": {"messages": 6, "bytes": 1500000}}},
      "run": {"version": "0.1.0", "command_line": "sluice train", "hosts": ["h1"]}})");
  run.settings = {{"order", "\"priority\"", "from preset p3"}, {"batch", "8", "from flag"}};
  run.steps = {{1, 8, 1, 2.0}, {2, 16, 2, 1.0}};
  run.evaluations = {{1, 0.5, 1, 2.0, 0.4}, {2, 1, 2, 1.5, 0.6}};
  run.time_line = TimeLine{
      .title = "t",
      .unit = "ms",
      .kinds = {"forward", "sending"},
      .length = 10,
      .lanes = {{"host 0: compute", {{0, 5, 0, "f"}}}, {"host 0: out", {{5, 10, 1, "push"}}}}};
  return run;
}

std::vector<std::string> titles_of(const Page& page) {
  std::vector<std::string> titles;
  for (const Section& section : page.sections) {
    titles.push_back(section.title);
  }
  return titles;
}

TEST(RunPage, TellsWhatTheRunRecorded) {
  const Page page = run_page(some_run("mine"));
  EXPECT_THAT(titles_of(page),
              ElementsAre("", "What limits the run", "Learning", "Time line", "Links",
                          "What the mechanism did", "Settings", "Machine and versions"));
  const std::string html = to_html(page);
  for (const char* text :
       {"<h1>mine</h1>", "lenet · p3 · 4 workers · in virtual time", "the links are full",
        "Training loss by iteration", "Test accuracy by time", "1.5 MB", "95.0 %",
        "<td>8</td><td>from flag</td>", "<td>priority</td>", "sluice train",
        "exposed communication"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_THAT(html, Not(AllOf(HasSubstr("<script"), HasSubstr("http"))));
}

TEST(RunPage, LeavesOutWhatTheRunLacks) {
  RunData run;
  run.name = "lab";
  run.summary = nlohmann::json::parse(R"({"ran_s": 3})");
  run.links = {{0, 0, 0, 0}, {1, 0, 1e6, 2e6}, {0, 1, 0, 0}, {1, 1, 3e6, 0}};
  const Page page = run_page(run);
  EXPECT_THAT(titles_of(page), ElementsAre("", "Links", "Machine and versions"));
  const Charts charts = utilisation_charts(run);
  ASSERT_THAT(charts.charts, SizeIs(2));
  ASSERT_THAT(charts.charts[0].lines, SizeIs(2));
  EXPECT_THAT(charts.charts[0].lines[0].points, ElementsAre(Pair(1, 16)));
  EXPECT_THAT(charts.charts[1].lines[1].points, ElementsAre(Pair(1, 24)));
}

TEST(RunPage, ComparesRuns) {
  const std::string html = to_html(comparison_page({some_run("one"), some_run("two")}));
  EXPECT_THAT(html, HasSubstr("<h1>2 runs</h1>"));
  EXPECT_THAT(html, HasSubstr("two: Communication limits this run"));
  EXPECT_THAT(html, HasSubstr("<i class=\"s1\"></i>two</li>"));
}

// Every text of a run may be hostile.
RC_GTEST_PROP(RunPage, NeverContainsWhatAUserWroteAsMarkup, (const std::string& more)) {
  const std::string bad = "<script>alert(\"" + more + "\")</script>";
  RunData run = some_run(bad);
  for (const char* key : {"preset", "model", "device"}) {
    run.summary[key] = bad;
  }
  run.summary["run"]["command_line"] = bad;
  run.summary["run"]["hosts"] = {bad, 3};
  run.summary["mechanism"]["sent_by_kind"] = {{bad, {{"bytes", bad}}}};
  run.settings.push_back({bad, bad, bad});
  run.time_line->lanes[0].name = bad;
  run.time_line->lanes[0].spans[0].name = bad;
  run.time_line->unit = bad;
  run.time_line->kinds[0] = bad;
  RC_ASSERT(to_html(run_page(run)).find("<script") == std::string::npos);
  RC_ASSERT(to_html(comparison_page({run, run})).find("<script") == std::string::npos);
}

TEST(RunPage, ThinsOutLongCurves) {
  LineChart::Line line{.name = "loss", .points = {}};
  for (int i = 0; i < 1000; ++i) {
    line.points.emplace_back(i, i % 10);
  }
  const LineChart::Line thin = thinned(line, 100);
  ASSERT_THAT(thin.points, SizeIs(100));
  EXPECT_THAT(thin.points[0], Pair(4.5, 4.5));
  EXPECT_THAT(thin.spread[0], Pair(0, 9));
  EXPECT_THAT(thinned(line, 1000).spread, IsEmpty());
}

TEST(RunPage, IsWrittenIntoTheFolder) {
  const TemporaryFolder folder;
  folder.write("summary.json", R"({"preset": "p3"})");
  const auto path = write_report(folder.path());
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, folder.path() / "report.html");
  EXPECT_THAT(folder.read("report.html"), HasSubstr("</html>"));
}

}  // namespace
}  // namespace sluice
