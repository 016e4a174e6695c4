#include "compute/data/sharding.h"

#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

// A permutation of 0 ... size-1 whose places can be asked for one by one: a Feistel network over
// the next even power of two, applied again while it lands beyond the end (it comes back, because
// every walk along a permutation is a cycle).
class Permutation {
 public:
  Permutation(std::uint64_t key, std::uint64_t size)
      : key_(key), size_(size), half_bits_((std::bit_width(size - 1) + 1U) / 2) {}

  std::uint64_t operator()(std::uint64_t place) const {
    do {
      place = scramble(place);
    } while (place >= size_);
    return place;
  }

 private:
  static constexpr std::uint64_t kRounds = 6;

  std::uint64_t scramble(std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mix(mix(key_ + round) ^ right) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t key_;
  std::uint64_t size_;
  unsigned half_bits_;
};

}  // namespace

std::vector<std::int64_t> Sharding::batch_of(std::size_t rank, Iteration iteration) const {
  const std::int64_t steps = steps_per_epoch();
  check(steps > 0, "an epoch has at least one step");
  check(rank < workers && iteration >= 0, "the batch belongs to a worker and an iteration");
  const std::int64_t epoch = iteration / steps;
  const std::int64_t step = iteration % steps;
  const Permutation permutation(Random(seed, static_cast<std::uint64_t>(epoch)).next(),
                                static_cast<std::uint64_t>(samples));
  const auto begin = static_cast<std::uint64_t>(
      (step * static_cast<std::int64_t>(workers) + static_cast<std::int64_t>(rank)) * batch);
  std::vector<std::int64_t> indices;
  indices.reserve(static_cast<std::size_t>(batch));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch); ++i) {
    indices.push_back(static_cast<std::int64_t>(permutation(begin + i)));
  }
  return indices;
}

}  // namespace sluice
