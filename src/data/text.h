#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace sluice {

using Sentence = std::vector<std::int32_t>;  // words are kFirstWord or above, or kUnknown

// Numbers with a special meaning.
inline constexpr std::int64_t kPadding = 0;
inline constexpr std::int64_t kBegin = 1;
inline constexpr std::int64_t kEnd = 2;
inline constexpr std::int64_t kUnknown = 3;  // any word outside the vocabulary
inline constexpr std::int64_t kFirstWord = 4;

// Sentences with their translations, for a network that predicts each word of a translation from
// the sentence and the words before it. A batch is as wide as its longest sentence with an end
// mark, and has two rows per pair:
//
//   source   w1 w2 w3 end padding ...
//   target   begin v1 v2  padding ...      labels: v1 v2 end kNoLabel ...
struct TextSet final : Samples {
  std::int64_t longest = 0;  // max words per sentence, with the end mark
  std::int64_t source_words = 0;
  std::int64_t target_words = 0;
  std::vector<Sentence> source;
  std::vector<Sentence> target;    // one per source
  std::vector<std::int64_t> ends;  // of the buckets, see Samples
  Preparation prepared;

  SampleForm form() const override { return {{2, longest}, target_words, source_words}; }
  Preparation preparation() const override { return prepared; }
  std::int64_t size() const override { return static_cast<std::int64_t>(source.size()); }
  std::vector<std::int64_t> bucket_ends() const override { return ends; }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;
};

struct TextSplit {
  TextSet train;
  TextSet test;
};

}  // namespace sluice
