#include "codecs/sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "codecs/values.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Bytes with these words, valid or not.
std::vector<std::byte> bytes_of(const std::vector<std::uint32_t>& words) {
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

std::string fault_of(std::span<const std::byte> bytes, std::int64_t length) {
  const auto view = SparseView::parse(bytes, length);
  return view ? "" : view.error().message();
}

// Some positions of a chunk, ascending.
std::vector<std::uint32_t> some_positions(std::size_t length, Random& random) {
  std::vector<std::uint32_t> positions;
  const auto one_in = 1 + random.below(8);
  for (std::uint32_t i = 0; i < length; ++i) {
    if (random.below(one_in) == 0) {
      positions.push_back(i);
    }
  }
  return positions;
}

RC_GTEST_PROP(SparseProperties, BringsBackTheEntries, ()) {
  const auto chunk = testing::any_values(0, 500);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto positions = some_positions(chunk.size(), random);
  const auto bytes = encode_sparse(chunk, positions);
  const auto length = static_cast<std::int64_t>(chunk.size());
  RC_ASSERT(static_cast<Bytes>(bytes.size()) == sparse_size(std::ssize(positions)));
  const auto view = SparseView::parse(bytes, length);
  RC_ASSERT(static_cast<bool>(view));
  RC_ASSERT(view->entries() == positions.size());
  std::vector<float> expected(chunk.size(), 1.0F);
  for (std::size_t e = 0; e < positions.size(); ++e) {
    RC_ASSERT(view->position(e) == positions[e]);
    RC_ASSERT(view->value(e) == chunk[positions[e]]);
    expected[positions[e]] += -0.5F * chunk[positions[e]];
  }
  std::vector<float> sum(chunk.size(), 1.0F);
  view->add_to(sum, -0.5F);
  RC_ASSERT(sum == expected);
}

// The same bits as adding one after the other to a dense chunk.
RC_GTEST_PROP(SparseProperties, SumsInTheOrderOfTheParts, ()) {
  const auto length = *rc::gen::inRange<std::size_t>(1, 400);
  const auto workers = *rc::gen::inRange<std::size_t>(0, 9);
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  std::vector<std::vector<std::byte>> coded;
  std::vector<SparseView> parts;
  std::vector<float> expected(length);
  std::vector<bool> touched(length);
  for (std::size_t w = 0; w < workers; ++w) {
    const auto chunk = testing::values_of(testing::Flavour::kWide, length, random.next());
    const auto positions = some_positions(length, random);
    coded.push_back(encode_sparse(chunk, positions));
    for (const std::uint32_t position : positions) {
      expected[position] += chunk[position];
      touched[position] = true;
    }
  }
  for (const auto& bytes : coded) {
    parts.push_back(*SparseView::parse(bytes, static_cast<std::int64_t>(length)));
  }
  const auto bytes = sum_sparse(parts);
  const auto total = SparseView::parse(bytes, static_cast<std::int64_t>(length));
  RC_ASSERT(static_cast<bool>(total));
  RC_ASSERT(static_cast<std::ptrdiff_t>(total->entries()) == std::ranges::count(touched, true));
  std::vector<float> sum(length);
  total->add_to(sum, 1);
  RC_ASSERT(sum == expected);
}

TEST(SparseTest, SumOfNothingIsEmpty) {
  EXPECT_EQ(sum_sparse({}), encode_sparse({}, {}));
  EXPECT_EQ(std::ssize(sum_sparse({})), sparse_size(0));
}

TEST(SparseTest, RefusesWhatIsNoSparseVector) {
  EXPECT_EQ(fault_of(bytes_of({2, 3, 7, 0, 0}), 8), "");
  EXPECT_THAT(fault_of({}, 8), HasSubstr("0 bytes"));
  EXPECT_THAT(fault_of(bytes_of({2, 3, 7, 0}), 8), HasSubstr("16 bytes, expected 20"));
  EXPECT_THAT(fault_of(bytes_of({2, 3, 7, 0, 0, 0}), 8), HasSubstr("24 bytes, expected 20"));
  EXPECT_THAT(fault_of(bytes_of({0xffff'ffffU, 0, 0}), 8), HasSubstr("4294967295 entries"));
  EXPECT_THAT(fault_of(bytes_of({2, 3, 8, 0, 0}), 8), HasSubstr("entry 1: position 8"));
  EXPECT_THAT(fault_of(bytes_of({2, 7, 3, 0, 0}), 8), HasSubstr("entry 1: position 3"));
  EXPECT_THAT(fault_of(bytes_of({2, 3, 3, 0, 0}), 8), HasSubstr("entry 1: position 3"));
  EXPECT_THAT(fault_of(bytes_of({1, 0, 0}), 0), HasSubstr("entry 0: position 0"));
}

TEST(SparseTest, IsAddedOnlyToItsOwnChunk) {
  const auto bytes = bytes_of({1, 3, 0});
  std::vector<float> shorter(3);
  EXPECT_THROW(SparseView::parse(bytes, 4)->add_to(shorter, 1), InvariantError);
}

// Whatever arrives is refused or safe to add. Small words make it likely to come near validity.
RC_GTEST_PROP(SparseProperties, SurvivesAnyBytes, ()) {
  auto words = *rc::gen::container<std::vector<std::uint32_t>>(
      rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 6), rc::gen::arbitrary<std::uint32_t>()));
  if (!words.empty() && *rc::gen::arbitrary<bool>()) {
    words[0] = static_cast<std::uint32_t>(words.size() / 2);
  }
  auto bytes = bytes_of(words);
  bytes.resize(bytes.size() - std::min(bytes.size(), *rc::gen::element<std::size_t>(0, 0, 1, 3)));
  const auto length = *rc::gen::inRange<std::int64_t>(0, 50);
  const auto view = SparseView::parse(bytes, length);
  if (view) {
    std::vector<float> sum(static_cast<std::size_t>(length));
    view->add_to(sum, 1);
    for (std::size_t e = 0; e < view->entries(); ++e) {
      RC_ASSERT(view->position(e) < length);
      RC_ASSERT(e == 0 || view->position(e - 1) < view->position(e));
    }
  } else {
    RC_ASSERT(!view.error().message().empty());
  }
}

}  // namespace
}  // namespace sluice
