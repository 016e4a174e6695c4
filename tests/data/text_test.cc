#include "data/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "data/synthetic.h"

namespace sluice {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(TextSetTest, ABatchIsAsWideAsItsLongestSentence) {
  TextSet set;
  set.longest = 9;
  set.source_words = 20;
  set.target_words = 30;
  set.source = {{7}, {8, 9, 10, 11, 12, 13, 14}, {5, 6, 7}};
  set.target = {{21, 22, 23}, {24}, {25, 26}};
  Batch batch;
  batch.features = {1};  // of another batch
  set.load(std::array<std::int64_t, 2>{2, 0}, 0, batch);
  EXPECT_TRUE(batch.features.empty());
  EXPECT_EQ(batch.shape, (Numbers{2, 2, 4}));
  EXPECT_EQ(batch.words, (Numbers{5, 6, 7, kEnd, kBegin, 25, 26, kPadding,  //
                                  7, kEnd, kPadding, kPadding, kBegin, 21, 22, 23}));
  EXPECT_EQ(batch.labels, (Numbers{25, 26, kEnd, kNoLabel, 21, 22, 23, kEnd}));
  const SampleForm form = set.form();
  EXPECT_EQ(form.shape, (Numbers{2, 9}));
  EXPECT_EQ(form.words, 20);
  EXPECT_EQ(form.classes, 30);
}

SyntheticTextSpec small_text_spec() {
  return {.longest = 7,
          .source_words = 40,
          .target_words = 25,
          .train_samples = 400,
          .test_samples = 30,
          .seed = 3};
}

TEST(SyntheticTextTest, SentencesHaveAllLengthsAndKnownWords) {
  const TextSplit split = make_synthetic_text(small_text_spec());
  EXPECT_EQ(split.train.size(), 400);
  EXPECT_EQ(split.test.size(), 30);
  std::map<std::size_t, int> lengths;
  for (const Sentence& sentence : split.train.source) {
    ++lengths[sentence.size()];
    EXPECT_GE(*std::ranges::min_element(sentence), kFirstWord);
    EXPECT_LT(*std::ranges::max_element(sentence), 40);
  }
  EXPECT_EQ(lengths.size(), 6U);
  EXPECT_EQ(lengths.begin()->first, 1U);
  EXPECT_EQ(lengths.rbegin()->first, 6U);
}

TEST(SyntheticTextTest, OneDictionaryTranslatesAll) {
  const TextSplit split = make_synthetic_text(small_text_spec());
  std::map<std::int32_t, std::int32_t> dictionary;
  for (const TextSet* set : {&split.train, &split.test}) {
    for (std::size_t i = 0; i < set->source.size(); ++i) {
      ASSERT_EQ(set->source[i].size(), set->target[i].size());
      for (std::size_t j = 0; j < set->source[i].size(); ++j) {
        const std::int32_t word = set->target[i][j];
        EXPECT_EQ(dictionary.try_emplace(set->source[i][j], word).first->second, word);
        EXPECT_TRUE(word >= kFirstWord && word < 25);
      }
    }
  }
  EXPECT_GT(dictionary.size(), 30U);
}

TEST(SyntheticTextTest, IsFixedByItsSeed) {
  SyntheticTextSpec spec = small_text_spec();
  const TextSplit split = make_synthetic_text(spec);
  EXPECT_EQ(make_synthetic_text(spec).train.source, split.train.source);
  EXPECT_NE(split.test.source.front(), split.train.source.front());
  spec.seed = 4;
  EXPECT_NE(make_synthetic_text(spec).train.source, split.train.source);
}

}  // namespace
}  // namespace sluice
