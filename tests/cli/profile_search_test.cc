#include "cli/profile_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/command.h"

namespace sluice::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class ProfileSearchTest : public testing::Test {
 protected:
  ProfileSearchTest() {
    for (const char* name : {"first/k80", "second/k80", "second/p4000"}) {
      std::filesystem::create_directories(folder_.path() / name);
    }
    folder_.write("first/k80/resnet50.json", "{}");
    folder_.write("second/k80/resnet50.json", "{}");
    folder_.write("second/p4000/resnet50.json", "{}");
    folder_.write("second/p4000/vgg19.json", "{}");
  }

  Result<std::string> find(const std::string& name) const {
    return find_profile(name, {folder_.path() / "first", folder_.path() / "second"});
  }
  std::string path(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(ProfileSearchTest, APathIsTakenAsItIs) {
  EXPECT_EQ(*find(path("second/p4000/vgg19.json")), path("second/p4000/vgg19.json"));
  EXPECT_EQ(*find("none.json"), "none.json") << "the reader of the file reports what is wrong";
}

TEST_F(ProfileSearchTest, ANameIsFoundInTheFirstFolderThatHasIt) {
  EXPECT_EQ(*find("k80/resnet50"), path("first/k80/resnet50.json"));
  EXPECT_EQ(*find("p4000/resnet50"), path("second/p4000/resnet50.json"));
  EXPECT_EQ(*find("p4000/resnet50.json"), path("second/p4000/resnet50.json"));
}

TEST_F(ProfileSearchTest, AnUnknownNameListsWhatIsNear) {
  const auto complaint = [&](const std::string& name) { return find(name).error().message(); };
  EXPECT_THAT(complaint("p4000/vgg91"), EndsWith("; did you mean p4000/vgg19?"));
  EXPECT_THAT(complaint("resnet50"), EndsWith("; did you mean k80/resnet50, p4000/resnet50?"));
  EXPECT_THAT(complaint("h100/vgg19"), EndsWith("; did you mean p4000/vgg19?"));
  EXPECT_THAT(complaint("transformer"),
              EndsWith("; searched in " + path("first") + " and " + path("second")));
}

TEST_F(ProfileSearchTest, ClustersHaveNamesToo) {
  folder_.write("second/k80/slow.toml", "");
  const std::vector<std::filesystem::path> folders{folder_.path() / "second"};
  EXPECT_EQ(*find_cluster("k80/slow", folders), path("second/k80/slow.toml"));
  EXPECT_EQ(*find_cluster("/dev/null", folders), "/dev/null") << "a pipe, say";
  EXPECT_THAT(find_cluster("k80/solw", folders).error().message(),
              EndsWith("no cluster of that name; did you mean k80/slow?"));
}

// With forward = backward / 2 and t = 2 n alpha + 2(n-1)/n M beta + (n-1)/n M gamma.
TEST(CliProfilesTest, ShippedClustersAreFoundByName) {
  const Outcome mg_wfbp = run_command("'" SLUICE_BINARY
                                      "' simulate --cluster clusters/mg-wfbp --iterations 2 "
                                      "--profile k80/googlenet --preset single --json",
                                      TemporaryFolder());
  EXPECT_EQ(mg_wfbp.code, 0) << mg_wfbp.err;
  const auto summary = nlohmann::json::parse(mg_wfbp.out);
  const double bytes = 4.0 * 13'004'888;
  const double beta = 1.2 / (9.0 * (1 << 30) / 8);
  const double gamma = 2.5e-9;
  const double us = 2 * 64 * 45.25 + 1e6 * bytes * (2 * 63.0 / 64 * beta + 63.0 / 64 * gamma);
  EXPECT_NEAR(summary.at("exposed_communication_us"), us, 1);
}

// Six virtual machines on three machines, four workers each.
TEST(CliProfilesTest, TheClusterOfTheAnalysisSharesItsInterfaces) {
  const auto run = [](const std::string& more) {
    const Outcome outcome = run_command("'" SLUICE_BINARY
                                        "' simulate --cluster clusters/analysis-10g --iterations 2 "
                                        "--profile titan-v/resnet50 --json " +
                                            more,
                                        TemporaryFolder());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto one = run("--preset bsp");
  EXPECT_EQ(one.at("hosts"), 6);
  EXPECT_EQ(one.at("workers"), 24);
  EXPECT_EQ(run("--preset bsp").at("iteration_us"), one.at("iteration_us"));
  EXPECT_NE(run("--preset bsp --seed 2").at("iteration_us"), one.at("iteration_us"));
}

TEST(CliProfilesTest, AreFoundByName) {
  const TemporaryFolder folder;
  folder.write("two.toml", "hosts = 2\nbandwidth_gbps = 10\n");
  const auto run = [&](const std::string& command) { return run_command(command, folder); };
  const std::string simulate = "'" SLUICE_BINARY "' simulate --cluster two.toml --iterations 2 ";
  const Outcome shipped = run(simulate + "--profile p4000/resnet50 --run run");
  EXPECT_EQ(shipped.code, 0) << shipped.err;
  EXPECT_THAT(folder.read("run/config.toml"), HasSubstr("p4000/resnet50.json, from flag"));
  const Outcome replay = run("'" SLUICE_BINARY
                             "' train --model replay:p4000-roofline/vgg19 --iterations 1 "
                             "--workers 2 --time-scale 1e-6 --param-scale 1e-4");
  EXPECT_EQ(replay.code, 0) << replay.err;
  const Outcome unknown = run(simulate + "--profile p4000/resnet5");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("profile \"p4000/resnet5\": there is no such file and no "
                                     "profile of that name; did you mean p4000/resnet50?"));
  std::filesystem::create_directories(folder.path() / "mine/own");
  std::filesystem::copy(SLUICE_SOURCE_DIR "/profiles/k80/resnet50.json",
                        folder.path() / "mine/own/net.json");
  const Outcome mine = run("SLUICE_PROFILES=none:mine " + simulate + "--profile own/net");
  EXPECT_EQ(mine.code, 0) << mine.err;
}

}  // namespace
}  // namespace sluice::cli
