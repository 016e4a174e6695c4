#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/skip.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::StartsWith;

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename());
  }
  return names;
}

TEST(FileTest, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string text("a\0b\r\n\xff", 6);
  ASSERT_TRUE(write_file(folder.path() / "f", text));
  EXPECT_EQ(*read_file(folder.path() / "f"), text);
}

TEST(FileTest, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() / "missing";
  EXPECT_EQ(read_file(missing).error().message(),
            missing + ": cannot be read: No such file or directory");
  EXPECT_EQ(read_file(folder.path()).error().message(),
            folder.path().string() + ": cannot be read: Is a directory");
}

TEST(FileTest, KeepsTheOldFileWhenWritingFails) {
  const TemporaryFolder folder;
  folder.write("f", "old");
  const auto written = write_file(folder.path() / "f", [](std::ostream& out) {
    out << "half";
    out.setstate(std::ios::failbit);
  });
  EXPECT_FALSE(written);
  EXPECT_EQ(folder.read("f"), "old");
  EXPECT_THAT(names_in(folder), ElementsAre("f"));
}

// The start of a process's memory can be opened, but reading it fails.
TEST(FileTest, AnErrorWhileReadingIsNotTheEnd) {
  EXPECT_EQ(read_file("/proc/self/mem").error().message(),
            "/proc/self/mem: cannot be read: Input/output error");
}

TEST(FileTest, ReadsAFileThatDoesNotTellItsSize) {
  EXPECT_THAT(*read_file("/proc/self/status"), StartsWith("Name:"));
}

TEST(FileTest, AFullDiskIsNamed) {
  EXPECT_EQ(write_file("/dev/full", "text").error().message(),
            "/dev/full: cannot be written: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << "a device is not replaced";
}

TEST(FileTest, AFolderIsNotReplaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "f");
  EXPECT_THAT(write_file(folder.path() / "f", "text").error().message(),
              EndsWith("Is a directory"));
  EXPECT_THAT(names_in(folder), ElementsAre("f"));
}

// Two concurrent writers of the same file have a temporary file each.
TEST(FileTest, OfTwoWritersOneWins) {
  const TemporaryFolder folder;
  const auto written = write_file(folder.path() / "f", [&](std::ostream& outer) {
    outer << "outer";
    EXPECT_TRUE(write_file(folder.path() / "f", "inner"));
    EXPECT_EQ(folder.read("f"), "inner");
  });
  EXPECT_TRUE(written);
  EXPECT_EQ(folder.read("f"), "outer");
  EXPECT_THAT(names_in(folder), ElementsAre("f"));
}

TEST(FileTest, ANewFileHasTheUsualRights) {
  const TemporaryFolder folder;
  const mode_t mask = umask(022);
  EXPECT_TRUE(write_file(folder.path() / "f", "text"));
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat((folder.path() / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST(FileTest, SaysWhyAFileCannotBeWritten) {
  const TemporaryFolder folder;
  const auto written = write_file(folder.path() / "no" / "such" / "folder", "text");
  EXPECT_THAT(written.error().message(), StartsWith(folder.path().string()));
  EXPECT_THAT(written.error().message(), EndsWith("No such file or directory"));
}

TEST(FileTest, KnowsWhatBelongsToAnother) {
  if (geteuid() != 0) {
    SKIP_FOR_LACK("only root can give files away");
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.path() / "f", "text"));
  EXPECT_FALSE(belongs_to_another(folder.path() / "f"));
  EXPECT_FALSE(belongs_to_another(folder.path() / "none"));
  constexpr uid_t kSomebody = 4711;
  ASSERT_EQ(chown((folder.path() / "f").c_str(), kSomebody, kSomebody), 0);
  EXPECT_TRUE(belongs_to_another(folder.path() / "f"));
}

}  // namespace
}  // namespace sluice
