#pragma once

#include <cstdint>

#include "data/characters.h"
#include "data/dataset.h"
#include "data/text.h"

namespace sluice {

struct SyntheticSpec {
  std::vector<std::int64_t> sample_shape;
  std::int64_t classes = 10;
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 1'000;
  double noise = 1;  // standard deviation; that of the class prototypes is 1
  std::uint64_t seed = 1;
};

// Data that can be learned: each sample is the prototype of its class plus noise. Equal specs give
// equal data on every machine; features have mean 0 and standard deviation 1.
DataSplit make_synthetic(const SyntheticSpec& spec);

struct SyntheticTextSpec {
  std::int64_t longest = 50;  // at least 2
  std::int64_t source_words = 1000;
  std::int64_t target_words = 1000;
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 1'000;
  std::uint64_t seed = 1;
};

// Text that can be learned: sentences of 1 ... longest-1 words, some of them much more frequent
// than others, translated word by word with one dictionary. Equal specs give equal text on every
// machine.
TextSplit make_synthetic_text(const SyntheticTextSpec& spec);

struct SyntheticCharactersSpec {
  std::int64_t length = 32;
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 1'000;
  std::uint64_t seed = 1;
};

// Text that can be learned: each character has a successor that mostly follows it. Equal specs give
// equal text on every machine.
CharacterSplit make_synthetic_characters(const SyntheticCharactersSpec& spec);

}  // namespace sluice
