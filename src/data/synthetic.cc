#include "data/synthetic.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

// Uniform with mean 0 and standard deviation 1. A normal distribution would need a logarithm, whose
// last bit differs between machines.
double unit_noise(Random& random) { return (random.uniform() * 2 - 1) * std::sqrt(3.0); }

std::vector<float> make_prototypes(const SyntheticSpec& spec, std::int64_t classes,
                                   std::int64_t sample_size) {
  Random random(spec.seed, 0);
  std::vector<float> prototypes(static_cast<std::size_t>(classes * sample_size));
  for (float& value : prototypes) {
    value = static_cast<float>(unit_noise(random));
  }
  return prototypes;
}

DataSet make_set(const SyntheticSpec& spec, std::int64_t samples, std::uint64_t stream) {
  DataSet set;
  set.sample_shape = spec.sample_shape;
  set.classes = spec.classes;
  const std::int64_t sample_size = set.sample_size();
  const std::vector<float> prototypes =
      make_prototypes(spec, std::min(spec.classes, samples), sample_size);
  const double scale = 1 / std::sqrt(1 + spec.noise * spec.noise);
  Random random(spec.seed, stream);
  set.features.reserve(static_cast<std::size_t>(samples * sample_size));
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t label = i % spec.classes;
    set.labels.push_back(label);
    for (std::int64_t j = 0; j < sample_size; ++j) {
      const double prototype = prototypes[static_cast<std::size_t>(label * sample_size + j)];
      set.features.push_back(
          static_cast<float>((prototype + spec.noise * unit_noise(random)) * scale));
    }
  }
  return set;
}

// The dictionary's translation of a word.
std::int32_t translated(std::int32_t word, const SyntheticTextSpec& spec) {
  const auto words = static_cast<std::uint64_t>(spec.target_words - kFirstWord);
  Random random(spec.seed, static_cast<std::uint64_t>(word));
  return static_cast<std::int32_t>(kFirstWord + static_cast<std::int64_t>(random.below(words)));
}

TextSet make_text(const SyntheticTextSpec& spec, std::int64_t samples, std::uint64_t stream) {
  TextSet set;
  set.longest = spec.longest;
  set.source_words = spec.source_words;
  set.target_words = spec.target_words;
  const auto words = static_cast<double>(spec.source_words - kFirstWord);
  Random random(mix(spec.seed), stream);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint64_t length = 1 + random.below(static_cast<std::uint64_t>(spec.longest - 1));
    Sentence& source = set.source.emplace_back();
    Sentence& target = set.target.emplace_back();
    for (std::uint64_t j = 0; j < length; ++j) {
      const double chance = random.uniform();
      source.push_back(static_cast<std::int32_t>(kFirstWord) +
                       static_cast<std::int32_t>(words * chance * chance * chance));
      target.push_back(translated(source.back(), spec));
    }
  }
  return set;
}

CharacterSet make_characters(const SyntheticCharactersSpec& spec, std::int64_t samples,
                             std::uint64_t stream) {
  constexpr double kFollows = 0.8;  // chance of a character's own successor
  CharacterSet set;
  set.length = spec.length;
  constexpr auto kAll = static_cast<std::uint64_t>(kCharacters);
  Random random(mix(spec.seed), stream);
  std::uint64_t last = 0;
  for (std::int64_t i = 0; i <= samples * spec.length; ++i) {
    last = random.uniform() < kFollows ? (last + 1) % kAll : random.below(kAll);
    set.text.push_back(static_cast<char>(last));
  }
  return set;
}

}  // namespace

DataSplit make_synthetic(const SyntheticSpec& spec) {
  check(spec.classes > 0, "synthetic data needs at least one class");
  return {make_set(spec, spec.train_samples, 1), make_set(spec, spec.test_samples, 2)};
}

TextSplit make_synthetic_text(const SyntheticTextSpec& spec) {
  check(spec.longest >= 2, "a sentence needs a word and an end mark");
  check(std::min(spec.source_words, spec.target_words) > kFirstWord, "both languages need words");
  return {make_text(spec, spec.train_samples, 1), make_text(spec, spec.test_samples, 2)};
}

CharacterSplit make_synthetic_characters(const SyntheticCharactersSpec& spec) {
  return {make_characters(spec, spec.train_samples, 1),
          make_characters(spec, spec.test_samples, 2)};
}

}  // namespace sluice
