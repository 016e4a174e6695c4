#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::EndsWith;
using testing::StartsWith;

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
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f.tmp"));
}

TEST(FileTest, SaysWhyAFileCannotBeWritten) {
  const TemporaryFolder folder;
  const auto written = write_file(folder.path() / "no" / "such" / "folder", "text");
  EXPECT_THAT(written.error().message(), StartsWith(folder.path().string()));
  EXPECT_THAT(written.error().message(), EndsWith("No such file or directory"));
}

}  // namespace
}  // namespace sluice
