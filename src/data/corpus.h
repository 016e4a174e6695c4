#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/text.h"

namespace sluice {

struct CorpusSpec {
  std::string folder;
  std::string source;  // language; also the extension of its files
  std::string target;
  std::int64_t vocabulary = 32'000;  // known words per language: the most frequent ones
  std::int64_t longest = 50;         // max words per sentence, with the end mark
};

struct Corpus {
  TextSet train;
  TextSet test;
  std::int64_t left_out = 0;  // pairs where a sentence is empty or too long
};

// Reads one sentence per line, with blanks between words, from train.SOURCE and train.TARGET, and
// from the first pair found among val, valid, dev, test, tst2012, tst2013. The vocabularies come
// from the training text. Sentences are sorted by length; lengths with the same tens digits form a
// bucket. Errors name the file and the offset.
Result<Corpus> read_corpus(const CorpusSpec& spec);

}  // namespace sluice
