#include "cli/profile_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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
              EndsWith("; profiles with names are in " + path("first") + " and " + path("second")));
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
