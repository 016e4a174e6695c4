#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/text.h"

namespace sluice {

struct CorpusSpec {
  std::string folder;
  std::string source;  // languages: the endings of the files
  std::string target;
  std::int64_t vocabulary = 32'000;  // words that are known of each language, the most frequent
  std::int64_t longest = 50;         // words of a sentence and its end mark, at most
};

struct Corpus {
  TextSet train;
  TextSet test;
  std::int64_t left_out = 0;  // pairs with a sentence that is empty or too long
};

// Reads a sentence a line, words between blanks, from train.SOURCE and train.TARGET, and from the
// first pair that there is of val, valid, dev, test, tst2012, tst2013. What is known of each
// language comes from the training text. Its sentences are sorted by length, and those whose
// lengths begin with the same tens make a bucket. Errors name the file and the offset.
Result<Corpus> read_corpus(const CorpusSpec& spec);

}  // namespace sluice
