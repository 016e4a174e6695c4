#include "data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CorpusTest : public testing::Test {
 protected:
  void put_some() {
    folder_.write("train.en", "a b a\n\na  c\td\r\nb\n");
    folder_.write("train.vi", "x y\nz\nx\ny y y y y y y y y y\n");
    folder_.write("val.en", "c e\n");
    folder_.write("val.vi", "y w\n");
  }
  Result<Corpus> read(std::int64_t vocabulary = 100, std::int64_t longest = 20) {
    return read_corpus({folder_.path().string(), "en", "vi", vocabulary, longest});
  }
  std::string complaint() {
    const auto corpus = read();
    return corpus ? "" : corpus.error().message();
  }

  TemporaryFolder folder_;
};

TEST_F(CorpusTest, FrequentWordsComeFirst) {
  put_some();
  const auto corpus = read();
  ASSERT_TRUE(corpus) << corpus.error().message();
  // English: a 3, b 2, then c and d; Vietnamese: y 11, x 2, z 1. Short pairs first.
  EXPECT_THAT(corpus->train.source,
              ElementsAre(ElementsAre(4, 5, 4), ElementsAre(4, 6, 7), ElementsAre(5)));
  EXPECT_THAT(corpus->train.target,
              ElementsAre(ElementsAre(5, 4), ElementsAre(5), testing::SizeIs(10)));
  EXPECT_EQ(corpus->train.source_words, 8);
  EXPECT_EQ(corpus->train.target_words, 7);
  EXPECT_EQ(corpus->left_out, 1);
  EXPECT_THAT(corpus->train.bucket_ends(), ElementsAre(2, 3));
  EXPECT_THAT(corpus->test.source, ElementsAre(ElementsAre(6, kUnknown)));
  EXPECT_THAT(corpus->test.target, ElementsAre(ElementsAre(4, kUnknown)));
  EXPECT_EQ(corpus->test.form().shape, corpus->train.form().shape);
}

// Who uses the trained model must know which number is which word.
TEST_F(CorpusTest, TellsItsWordsByNumber) {
  put_some();
  const auto corpus = read();
  ASSERT_TRUE(corpus) << corpus.error().message();
  const Preparation preparation = corpus->test.preparation();
  EXPECT_THAT(preparation.source_words,
              ElementsAre("<padding>", "<begin>", "<end>", "<unknown>", "a", "b", "c", "d"));
  EXPECT_THAT(preparation.target_words,
              ElementsAre("<padding>", "<begin>", "<end>", "<unknown>", "y", "x", "z"));
  EXPECT_EQ(preparation.source_words[kEnd], "<end>");
  EXPECT_EQ(preparation, corpus->train.preparation());
}

TEST_F(CorpusTest, TheVocabularyIsCut) {
  put_some();
  const auto corpus = read(1);
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->test.preparation().source_words.back(), "a");
  EXPECT_EQ(corpus->train.source_words, kFirstWord + 1);
  EXPECT_THAT(corpus->train.source.front(), ElementsAre(kFirstWord, kUnknown, kFirstWord));
}

TEST_F(CorpusTest, SentencesThatAreTooLongAreLeftOut) {
  put_some();
  const auto corpus = read(100, 4);
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->train.size(), 2);
  EXPECT_EQ(corpus->left_out, 2);
  EXPECT_THAT(read(100, 3).error().message(),
              HasSubstr("/train.en: expected sentences of 1 ... 2 words"));
}

TEST_F(CorpusTest, TellsWhatIsMissing) {
  EXPECT_THAT(complaint(), HasSubstr("/train.en: cannot be read: No such file"));
  put_some();
  std::filesystem::remove(folder_.path() / "val.en");
  EXPECT_THAT(complaint(), HasSubstr("found none of val, valid, dev, test, tst2012, tst2013"));
  folder_.write("tst2013.en", "c\n");
  EXPECT_THAT(complaint(), HasSubstr("/tst2013.vi: cannot be read"));
  folder_.write("tst2013.vi", "y\n");
  EXPECT_EQ(complaint(), "");
}

TEST_F(CorpusTest, TellsWhereTheTextIsWrong) {
  put_some();
  folder_.write("train.vi", "x y\nz\nx\n");
  EXPECT_THAT(complaint(), HasSubstr("/train.vi: offset 8: expected as many lines as in "));
  EXPECT_THAT(complaint(), HasSubstr("/train.en, which has 4, found 3"));
  folder_.write("train.vi", "x\xc3\xa9\xff\n");
  EXPECT_THAT(complaint(),
              HasSubstr("/train.vi: offset 3: expected text in UTF-8, found the byte ff"));
}

// A cut within the last line cannot be detected. Others can: lines are missing, or half a
// character.
TEST_F(CorpusTest, WhereverAFileEndsTheOutcomeIsTold) {
  put_some();
  const std::string whole = "x y\nz\u00e9\nx\ny\u1ea5 y\n";
  const std::set<std::size_t> in_a_character{6, 12, 13};
  constexpr std::size_t kLastLine = 10;
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    folder_.write("train.vi", whole.substr(0, length));
    if (in_a_character.contains(length)) {
      EXPECT_THAT(complaint(), HasSubstr("expected text in UTF-8")) << length;
    } else if (length <= kLastLine) {
      EXPECT_THAT(complaint(), HasSubstr("expected as many lines")) << length;
    } else {
      EXPECT_EQ(complaint(), "") << length;
    }
  }
}

}  // namespace
}  // namespace sluice
