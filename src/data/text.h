#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace sluice {

using Sentence = std::vector<std::int32_t>;  // words from kFirstWord on, or kUnknown

// Numbers that are no words.
inline constexpr std::int64_t kPadding = 0;
inline constexpr std::int64_t kBegin = 1;
inline constexpr std::int64_t kEnd = 2;
inline constexpr std::int64_t kUnknown = 3;  // stands for any word beyond the vocabulary
inline constexpr std::int64_t kFirstWord = 4;

// Sentences with their translations, for a network that foretells each word of a translation from
// the sentence and the words before it. A batch is as wide as its longest sentence with an end
// mark, and has for every pair two rows:
//
//   source   w1 w2 w3 end padding ...
//   target   begin v1 v2  padding ...      to be answered by: v1 v2 end kNoAnswer ...
struct TextSet final : Samples {
  std::int64_t longest = 0;  // words of a sentence and its end mark, at most
  std::int64_t source_words = 0;
  std::int64_t target_words = 0;
  std::vector<Sentence> source;
  std::vector<Sentence> target;    // as many
  std::vector<std::int64_t> ends;  // of the buckets, see Samples

  SampleForm form() const override { return {{2, longest}, target_words, source_words}; }
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
