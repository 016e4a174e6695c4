#include "data/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

CharacterSet set_of(const std::string& text, std::int64_t length) {
  CharacterSet set;
  set.text = text;
  set.length = length;
  return set;
}

TEST(CharactersTest, LabelsAreTheNextCharacters) {
  const CharacterSet set = set_of("abcdefgh", 3);
  EXPECT_EQ(set.size(), 2) << "a third window would have no character after it";
  EXPECT_THAT(set.form().shape, ElementsAre(1, 3));
  EXPECT_EQ(set.form().classes, 256);
  EXPECT_EQ(set.form().words, 256);
  Batch batch;
  batch.features = {1};
  set.load(std::vector<std::int64_t>{1, 0}, 7, batch);
  EXPECT_THAT(batch.shape, ElementsAre(2, 1, 3));
  EXPECT_THAT(batch.words, ElementsAre('d', 'e', 'f', 'a', 'b', 'c'));
  EXPECT_THAT(batch.labels, ElementsAre('e', 'f', 'g', 'b', 'c', 'd'));
  EXPECT_TRUE(batch.features.empty());
}

TEST(CharactersTest, ACharacterIsAByteOfItsText) {
  Batch batch;
  set_of("\xc3\xa4!", 2).load(std::vector<std::int64_t>{0}, 0, batch);
  EXPECT_THAT(batch.words, ElementsAre(0xc3, 0xa4));
}

TEST(CharactersTest, FewerMayBeAskedForThanFit) {
  CharacterSet set = set_of("abcdefghij", 3);
  EXPECT_EQ(set.size(), 3);
  set.count = 2;
  EXPECT_EQ(set.size(), 2);
  set.count = 5;
  EXPECT_EQ(set.size(), 3);
}

// In each epoch others, and all of them occur: 97 places, 4,000 draws.
TEST(CharactersTest, WindowsAreDrawnFromTheWholeText) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(static_cast<char>(i));
  }
  CharacterSet set = set_of(text, 3);
  set.drawn = true;
  set.count = 20;
  std::vector<std::int64_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  std::set<std::int64_t> beginnings;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    Batch batch;
    set.load(all, epoch, batch);
    for (std::size_t i = 0; i < batch.words.size(); ++i) {
      ASSERT_EQ(batch.labels[i], batch.words[i] + 1);
      ASSERT_EQ(batch.words[i], batch.words[i - i % 3] + static_cast<std::int64_t>(i % 3));
      beginnings.insert(batch.words[i - i % 3]);
    }
    Batch again;
    set.load(std::vector<std::int64_t>{7}, epoch, again);
    EXPECT_EQ(again.words.front(), batch.words[21]) << "whatever is in the batch";
  }
  EXPECT_EQ(beginnings.size(), 97U);
}

// Every character but the first is a label once, in order, up to less than a window.
RC_GTEST_PROP(CharactersTest, WindowsCoverTheText, (const std::string& text)) {
  const auto length = *rc::gen::inRange<std::int64_t>(1, 9);
  const CharacterSet set = set_of(text, length);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    all.push_back(i);
  }
  Batch batch;
  set.load(all, 0, batch);
  RC_ASSERT(std::ssize(batch.labels) == set.size() * length);
  RC_ASSERT(text.empty() || std::ssize(text) - 1 - std::ssize(batch.labels) < length);
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    RC_ASSERT(batch.words[i] == static_cast<std::uint8_t>(text[i]));
    RC_ASSERT(batch.labels[i] == static_cast<std::uint8_t>(text[i + 1]));
  }
}

class CharacterFilesTest : public testing::Test {
 protected:
  std::string complaint(std::int64_t length) const {
    const auto split = read_characters(folder_.path().string(), length);
    return split ? "" : split.error().message();
  }

  TemporaryFolder folder_;
};

TEST_F(CharacterFilesTest, AreOneTextInTheOrderOfTheirNames) {
  folder_.write("b", std::string(12, 'b'));
  folder_.write("a", std::string(18, 'a'));
  folder_.write("more/c", "c");
  std::filesystem::create_symlink("a", folder_.path() / "z");
  const auto split = read_characters(folder_.path().string(), 2);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(split->train.text, std::string(18, 'a') + std::string(9, 'b'));
  EXPECT_EQ(split->test.text, "bbb") << "the last tenth";
  EXPECT_EQ(split->test.length, 2);
}

TEST_F(CharacterFilesTest, SayWhatIsWrongWithThem) {
  EXPECT_THAT(complaint(3), HasSubstr("expected at least 40 characters of text"));
  folder_.write("a", std::string(39, 'a'));
  EXPECT_THAT(complaint(3), HasSubstr("found 39; lower --input-size"));
  folder_.write("b", "a");
  EXPECT_EQ(complaint(3), "");
  folder_.write("b", "a\xff");
  EXPECT_THAT(complaint(3), HasSubstr("b: offset 1: expected text in UTF-8, found the byte ff"));
  EXPECT_THAT(read_characters("/nowhere", 3).error().message(), StartsWith("/nowhere: "));
}

// Debian has them: the text of the study lean.
TEST_F(CharacterFilesTest, LicencesAreEnglishText) {
  const auto split = read_characters(kLicenceFolder, 32);
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_GT(split->train.size(), 4000);
  EXPECT_THAT(split->train.text, HasSubstr("TERMS AND CONDITIONS"));
}

}  // namespace
}  // namespace sluice
