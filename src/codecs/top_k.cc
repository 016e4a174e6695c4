#include "codecs/top_k.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "codecs/bits.h"

namespace sluice {
namespace {

// Selection in three steps, each on far fewer values than the one before:
//   1. a sample, one value of each phase, guesses a threshold that a little more than k values
//      reach;
//   2. one pass finds these survivors, and skips blocks, and parts of blocks, whose largest value
//      falls short;
//   3. nth_element among the survivors finds the k largest.
// If fewer than k survive, the guess was too high, and 2 goes again with a lower one.
constexpr std::size_t kBlock = 64;
constexpr std::size_t kPart = 16;

// Of a short vector, such as a block of codec top-k, a sample of that would be too small.
std::size_t interval_of(std::size_t size) { return size < (1U << 16U) ? 32 : 512; }

// A magnitude and its position in one number, which is larger if it comes first in the selection.
using Candidate = std::uint64_t;

Candidate candidate(Magnitude magnitude, std::size_t position) {
  return (Candidate{magnitude} << 32U) | ~static_cast<std::uint32_t>(position);
}

std::uint32_t position_of(Candidate candidate) { return ~static_cast<std::uint32_t>(candidate); }

// A place drawn at random in each phase: a period in the values cannot mislead it.
std::vector<Magnitude> sample_of(std::span<const float> values) {
  Random random(0);
  const std::size_t interval = interval_of(values.size());
  std::vector<Magnitude> sample(values.size() / interval);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    sample[i] = magnitude_of(values[i * interval + random.below(interval)]);
  }
  return sample;
}

// The magnitude that `rank` others of the sample reach; 0, which all values reach, if there are not
// so many.
Magnitude ranked(std::vector<Magnitude>& sample, std::size_t rank) {
  if (rank >= sample.size()) {
    return 0;
  }
  const auto nth = sample.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(sample.begin(), nth, sample.end(), std::greater<>());
  return *nth;
}

// Appends the values of `block`, which begins at position `begin`, that reach the threshold.
void append_survivors(std::span<const float> block, std::size_t begin, Magnitude threshold,
                      std::vector<Candidate>& survivors) {
  for (std::size_t first = 0; first < block.size(); first += kPart) {
    const auto part = block.subspan(first, std::min(kPart, block.size() - first));
    if (largest_magnitude(part) < threshold) {
      continue;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (const Magnitude magnitude = magnitude_of(part[i]); magnitude >= threshold) {
        survivors.push_back(candidate(magnitude, begin + first + i));
      }
    }
  }
}

// Values that reach the threshold, in the order of their positions: the k largest are among them if
// there are k.
std::vector<Candidate> survivors_of(std::span<const float> values, Magnitude threshold,
                                    std::size_t k) {
  std::vector<Candidate> survivors;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    if (largest_magnitude(block) < threshold) {
      continue;
    }
    const bool sufficed = survivors.size() >= k;
    append_survivors(block, begin, threshold, survivors);
    if (!sufficed && survivors.size() >= k) {
      ++threshold;  // from here on a tie with it comes too late
    }
  }
  return survivors;
}

std::vector<Candidate> enough_survivors(std::span<const float> values, std::size_t k) {
  std::vector<Magnitude> sample = sample_of(values);
  const double expected = static_cast<double>(k) / static_cast<double>(interval_of(values.size()));
  // Three standard deviations above what the sample has of the k largest on average.
  auto rank = static_cast<std::size_t>(expected + 3 * std::sqrt(expected) + 3);
  for (;; rank *= 4) {
    std::vector<Candidate> survivors = survivors_of(values, ranked(sample, rank), k);
    if (survivors.size() >= k) {
      return survivors;
    }
  }
}

}  // namespace

std::vector<std::uint32_t> top_k(std::span<const float> values, std::size_t k) {
  check(values.size() <= std::numeric_limits<std::uint32_t>::max(), "positions fit 32 bits");
  std::vector<std::uint32_t> positions(std::min(k, values.size()));
  if (k == 0 || k >= values.size()) {
    std::iota(positions.begin(), positions.end(), 0U);
    return positions;
  }
  const std::vector<Candidate> survivors = enough_survivors(values, k);
  std::vector<Candidate> ranked = survivors;
  const auto last = ranked.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(ranked.begin(), last, ranked.end(), std::greater<>());
  auto out = positions.begin();
  for (const Candidate survivor : survivors) {
    if (survivor >= *last) {
      *out++ = position_of(survivor);
    }
  }
  return positions;
}

}  // namespace sluice
