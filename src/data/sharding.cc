#include "data/sharding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace sluice {
namespace {

// A permutation of 0 ... size-1 that can be evaluated at single positions: a Feistel network over
// the next even power of two, applied again while the result is beyond the end. This terminates,
// because every walk along a permutation is a cycle.
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

// Samples that share batches, and the number of them that each worker gets per epoch.
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t share = 0;
  std::int64_t steps = 0;
};

// Moves the bounds to multiples of the number of workers. So only the last bucket, which has at
// least one sample per worker, has samples left over.
std::vector<Bucket> buckets_of(const Sharding& sharding) {
  const auto workers = static_cast<std::int64_t>(sharding.workers);
  std::vector<Bucket> buckets;
  std::int64_t begin = 0;
  for (const std::int64_t bound : sharding.bucket_ends) {
    const std::int64_t end = bound / workers * workers;
    if (end > begin && sharding.samples - end >= workers) {
      buckets.push_back({.begin = begin, .size = end - begin});
      begin = end;
    }
  }
  buckets.push_back({.begin = begin, .size = sharding.samples - begin});
  for (Bucket& bucket : buckets) {
    bucket.share = bucket.size / workers;
    bucket.steps = (bucket.share + sharding.batch - 1) / sharding.batch;
  }
  return buckets;
}

std::int64_t steps_of(const std::vector<Bucket>& buckets) {
  std::int64_t steps = 0;
  for (const Bucket& bucket : buckets) {
    steps += bucket.steps;
  }
  return steps;
}

// A step of an epoch: part of a bucket, dealt by a permutation.
struct Step {
  Bucket bucket;
  std::uint64_t key;    // of the permutation
  std::int64_t before;  // samples of the bucket per worker in earlier steps
  std::int64_t count;   // samples per worker in this step
  std::size_t part;     // of the step: which of its batches this is
};

Step step_of(const Sharding& sharding, std::size_t rank, Iteration iteration) {
  const std::vector<Bucket> buckets = buckets_of(sharding);
  const std::int64_t steps = sharding.steps_per_epoch();
  check(steps > 0, "an epoch has at least one step");
  check(iteration >= 0, "a step belongs to an iteration");
  Random keys(sharding.seed, static_cast<std::uint64_t>(iteration / steps));
  std::int64_t step = iteration % steps;
  std::size_t part = rank;
  if (buckets.size() > 1) {
    const std::uint64_t each = sharding.shares.empty() ? sharding.workers : 1;
    const Permutation order(keys.next(), static_cast<std::uint64_t>(steps) * each);
    const std::uint64_t drawn = order(static_cast<std::uint64_t>(step) * each + rank % each);
    step = static_cast<std::int64_t>(drawn / each);
    part = each == 1 ? rank : static_cast<std::size_t>(drawn % each);
  }
  auto bucket = buckets.begin();
  std::uint64_t key = keys.next();
  for (; step >= bucket->steps; ++bucket) {
    step -= bucket->steps;
    key = keys.next();
  }
  // The first steps of a bucket have one sample more than the others.
  const std::int64_t size = bucket->share / bucket->steps;
  const std::int64_t larger = bucket->share % bucket->steps;
  return {*bucket, key, step * size + std::min(step, larger), size + (step < larger ? 1 : 0), part};
}

// Where a batch begins in its step, and its size.
std::pair<std::int64_t, std::int64_t> batch_in(const Step& step, const Sharding& sharding) {
  if (sharding.shares.empty()) {
    return {static_cast<std::int64_t>(step.part) * step.count, step.count};
  }
  const auto joined = step.count * static_cast<std::int64_t>(sharding.workers);
  const std::vector<std::int64_t> sizes = deal(joined, sharding.shares);
  const auto own = sizes.begin() + static_cast<std::ptrdiff_t>(step.part);
  return {std::accumulate(sizes.begin(), own, std::int64_t{0}), *own};
}

}  // namespace

std::int64_t Sharding::steps_per_epoch() const {
  return samples / static_cast<std::int64_t>(workers) < batch ? 0 : steps_of(buckets_of(*this));
}

std::int64_t Sharding::samples_per_epoch() const {
  return samples - samples % static_cast<std::int64_t>(workers);
}

std::int64_t Sharding::samples_of(Iteration iteration) const {
  if (bucket_ends.size() < 2 || !shares.empty()) {
    return step_of(*this, 0, iteration).count * static_cast<std::int64_t>(workers);
  }
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < workers; ++rank) {
    sum += step_of(*this, rank, iteration).count;
  }
  return sum;
}

std::vector<std::int64_t> Sharding::batch_of(std::size_t rank, Iteration iteration) const {
  check(rank < workers, "the batch belongs to a worker");
  const Step step = step_of(*this, rank, iteration);
  const Bucket& bucket = step.bucket;
  const auto [place, count] = batch_in(step, *this);
  const auto begin =
      static_cast<std::uint64_t>(step.before * static_cast<std::int64_t>(workers) + place);
  const Permutation permutation(step.key, static_cast<std::uint64_t>(bucket.size));
  std::vector<std::int64_t> indices;
  indices.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    indices.push_back(bucket.begin + static_cast<std::int64_t>(permutation(begin + i)));
  }
  return indices;
}

double Sharding::weight_of(std::size_t rank, Iteration iteration) const {
  const std::int64_t own = batch_in(step_of(*this, rank, iteration), *this).second;
  return static_cast<double>(own) * static_cast<double>(workers) /
         static_cast<double>(samples_of(iteration));
}

std::uint64_t Sharding::augmentation_seed_of(Iteration iteration) const {
  return Random(mix(seed), static_cast<std::uint64_t>(iteration / steps_per_epoch())).next();
}

// By largest remainders.
std::vector<std::int64_t> deal(std::int64_t total, const std::vector<double>& shares) {
  check(total >= static_cast<std::int64_t>(shares.size()), "there is one for each");
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = static_cast<double>(total) * shares[i] / sum;
    counts.push_back(static_cast<std::int64_t>(exact));
    remainders.emplace_back(std::floor(exact) - exact, i);
  }
  std::ranges::sort(remainders);  // the largest first, equal ones by place
  std::int64_t left = total - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) {
    ++counts[remainders[i % remainders.size()].second];
  }
  for (std::int64_t& count : counts) {
    if (count == 0) {
      --*std::ranges::max_element(counts);
      ++count;
    }
  }
  return counts;
}

}  // namespace sluice
