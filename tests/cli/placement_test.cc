#include "cli/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cli/host_list.h"
#include "support/temporary_folder.h"

namespace sluice::cli {
namespace {

using ::testing::ElementsAre;

TEST(PlacementTest, ProcessesOfAHostThatIsGoneGoWhereTheFewestAre) {
  EXPECT_THAT(moved_from({"b"}, {"a", "a", "b", "b", "c"}), ElementsAre("a", "a", "c", "a", "c"));
  EXPECT_THAT(moved_from({"a", "b"}, {"a", "b"}), ElementsAre("a", "b")) << "there is nowhere else";
  EXPECT_THAT(moved_from({"a"}, {"", "a"}), ElementsAre("", ""));
}

RC_GTEST_PROP(PlacementProperty, NobodyMovesWithoutNeedAndNoneIsLeftBehind, ()) {
  const auto name = rc::gen::element<std::string>("", "a", "b", "c", "d");
  const auto hosts = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(name));
  const auto lost = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "b", "c", "d"));
  const std::set<std::string> gone(lost.begin(), lost.end());
  const std::vector<std::string> after = moved_from(gone, hosts);
  const bool is_lost =
      std::ranges::all_of(hosts, [&](const std::string& host) { return gone.contains(host); });
  RC_ASSERT(after.size() == hosts.size());
  std::size_t moved_most = 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    RC_ASSERT(gone.contains(after[rank]) == is_lost);
    RC_ASSERT(gone.contains(hosts[rank]) || after[rank] == hosts[rank]);
    if (after[rank] != hosts[rank]) {
      moved_most =
          std::max(moved_most, static_cast<std::size_t>(std::ranges::count(after, after[rank])));
    }
  }
  // Whoever took one more had no more than any other before it.
  for (const std::string& host : after) {
    RC_ASSERT(static_cast<std::size_t>(std::ranges::count(after, host)) + 1 >= moved_most);
  }
}

TEST(PlacementTest, AFileForMpirunIsReadBack) {
  const std::vector<std::string> hosts{"h0", "h0", "h1", "h0", "h2", "h2"};
  EXPECT_EQ(hostfile_of(hosts, false), "h0 slots=3\nh1 slots=1\nh2 slots=2\n");
  for (const bool mpich : {false, true}) {
    const auto read = hosts_in(hostfile_of(hosts, mpich), 6);
    ASSERT_TRUE(read);
    EXPECT_THAT(*read, ElementsAre("h0", "h0", "h0", "h1", "h2", "h2"));
  }
  EXPECT_EQ(hostfile_of({"", "h1"}, false), "localhost slots=1\nh1 slots=1\n");
}

TEST(PlacementTest, TheAgentTellsWhoAnswers) {
  const TemporaryFolder folder;
  folder.write("agent", "echo $1 >> asked\ncase $1 in gone*) exit 255;; esac\nexec $2\n");
  const Placement place{.hosts = {"there", "gone", "", "there", "gone-too"},
                        .agent = {"sh", "-c", "cd " + folder.path().string() + "; . ./agent", "-"}};
  EXPECT_THAT(unreachable(place), ElementsAre("gone", "gone-too"));
  std::string asked = folder.read("asked");
  EXPECT_EQ(std::ranges::count(asked, '\n'), 3) << "each once, and this machine not at all";
  std::string said;
  const auto others = without_unreachable(place, [&](const std::string& text) { said = text; });
  EXPECT_EQ(said, "launch: gone, gone-too do not answer; other hosts run the processes from there");
  ASSERT_TRUE(others);
  EXPECT_THAT(others->hosts, ElementsAre("there", "", "", "there", "there"));
}

TEST(PlacementTest, ATemporaryFileGoesWithItsOwner) {
  std::filesystem::path path;
  {
    const TemporaryFile file("h0 slots=1\n");
    path = file.path();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace sluice::cli
