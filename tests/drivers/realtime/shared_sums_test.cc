#include "drivers/realtime/shared_sums.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <new>
#include <random>
#include <thread>

namespace sluice {
namespace {

using Values = std::vector<float>;

// Areas as processes of one machine would share them.
class SharedAreas {
 public:
  explicit SharedAreas(std::size_t ranks) {
    for (std::size_t m = 0; m < ranks; ++m) {
      areas_.emplace_back(
          static_cast<std::byte*>(::operator new(SharedSums::area_bytes(ranks), kAligned)));
      SharedSums::prepare(areas_.back().get());
    }
  }
  std::vector<std::byte*> all() const {
    std::vector<std::byte*> all;
    for (const auto& area : areas_) {
      all.push_back(area.get());
    }
    return all;
  }

 private:
  static constexpr std::align_val_t kAligned{SharedSums::kAlignment};
  struct Free {
    void operator()(std::byte* area) const { ::operator delete(area, kAligned); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> areas_;
};

// By process and sum.
using Terms = std::vector<std::vector<Values>>;

Terms some_terms(std::size_t ranks, const std::vector<std::size_t>& lengths, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Terms terms(ranks);
  for (auto& own : terms) {
    for (const std::size_t length : lengths) {
      own.emplace_back(length);
      for (float& value : own.back()) {
        value = normal(random);
      }
    }
  }
  return terms;
}

// Added in rank order.
std::vector<Values> plain_sums(const Terms& terms) {
  std::vector<Values> sums = terms[0];
  for (std::size_t m = 1; m < terms.size(); ++m) {
    for (std::size_t s = 0; s < sums.size(); ++s) {
      for (std::size_t i = 0; i < sums[s].size(); ++i) {
        sums[s][i] += terms[m][s][i];
      }
    }
  }
  return sums;
}

// Processes take turns in random order, and begin their sums at any time.
RC_GTEST_PROP(SharedSumsTest, AllEndWithTheSumInTheOrderOfRanks, ()) {
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 6);
  const auto lengths = *rc::gen::container<std::vector<std::size_t>>(
      *rc::gen::inRange<std::size_t>(1, 5),
      rc::gen::oneOf(rc::gen::inRange<std::size_t>(1, 40),
                     rc::gen::inRange<std::size_t>(1, 300'000)));
  Terms terms = some_terms(ranks, lengths, *rc::gen::arbitrary<unsigned>());
  const std::vector<Values> expected = plain_sums(terms);
  const SharedAreas areas(ranks);
  std::vector<SharedSums> sums;
  for (std::size_t m = 0; m < ranks; ++m) {
    sums.emplace_back(areas.all(), m);
  }
  std::vector<std::size_t> begun(ranks, 0);
  std::vector<std::size_t> done(ranks, 0);
  std::mt19937 random(*rc::gen::arbitrary<unsigned>());
  std::size_t open = ranks * lengths.size();
  for (std::size_t turns = 0; open > 0; ++turns) {
    RC_ASSERT(turns < 100'000U);
    const std::size_t m = random() % ranks;
    if (begun[m] < lengths.size() && random() % 2 == 0) {
      const std::size_t sum = begun[m]++;
      sums[m].begin(terms[m][sum], [&, m, sum] {
        RC_ASSERT(done[m]++ == sum);
        RC_ASSERT(terms[m][sum] == expected[sum]);
        --open;
      });
    }
    sums[m].progress();
  }
  for (std::size_t m = 0; m < ranks; ++m) {
    RC_ASSERT(sums[m].empty());
    RC_ASSERT(terms[m] == expected);
  }
}

// Under the thread sanitizer: nobody touches what another is writing.
TEST(SharedSumsThreadsTest, RanksAreIndependent) {
  constexpr std::size_t kRanks = 3;
  Terms terms = some_terms(kRanks, {200'000, 7, 66'000, 1}, 1);
  const std::vector<Values> expected = plain_sums(terms);
  const SharedAreas areas(kRanks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t m = 0; m < kRanks; ++m) {
      threads.emplace_back([&, m] {
        SharedSums sums(areas.all(), m);
        for (Values& values : terms[m]) {
          sums.begin(values, [] {});
        }
        while (!sums.empty()) {
          if (!sums.progress()) {
            std::this_thread::yield();
          }
        }
      });
    }
  }
  for (const auto& own : terms) {
    EXPECT_EQ(own, expected);
  }
}

TEST(SharedSumsTest, AreasServeAgain) {
  const SharedAreas areas(2);
  for (const unsigned round : {1U, 2U}) {
    Terms terms = some_terms(2, {150'000}, round);
    const std::vector<Values> expected = plain_sums(terms);
    SharedSums first(areas.all(), 0);
    SharedSums second(areas.all(), 1);
    first.begin(terms[0][0], [] {});
    second.begin(terms[1][0], [] {});
    while (!first.empty() || !second.empty()) {
      first.progress();
      second.progress();
    }
    EXPECT_EQ(terms[0], expected);
    EXPECT_EQ(terms[1], expected);
  }
}

}  // namespace
}  // namespace sluice
