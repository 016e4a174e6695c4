#include "drivers/realtime/shared_sums.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/range.h"

namespace sluice {
namespace {

// Long enough that the two barriers take little of its time, short enough that two blocks fit in a
// core's cache.
constexpr std::size_t kBlock = 65'536;
// The values stay in the first-level cache until all have been added.
constexpr std::int64_t kTile = 2'048;
constexpr std::size_t kInFlight = 2;
// The others are about as far: spinning for some microseconds pays. After some blocks the caller
// gets its turn.
constexpr int kLooks = 50;
constexpr int kSteps = 16;

std::size_t longest_part(std::size_t ranks) { return (kBlock + ranks - 1) / ranks; }

}  // namespace

std::size_t SharedSums::area_bytes(std::size_t ranks) {
  const std::size_t floats = kInFlight * (kBlock + longest_part(ranks));
  return sizeof(Progress) + floats * sizeof(float);
}

void SharedSums::prepare(std::byte* area) { new (area) Progress{}; }

SharedSums::SharedSums(std::vector<std::byte*> areas, std::size_t self)
    : areas_(std::move(areas)), self_(self) {
  check(self_ < areas_.size(), "each process has an area");
  copied_ = progress_of(self_).copied.load(std::memory_order_relaxed);
  added_ = copied_;
  taken_ = copied_;
}

void SharedSums::begin(std::span<float> values, std::function<void()> done) {
  check(!values.empty(), "a sum has values");
  waiting_.push_back({values, std::move(done)});
}

bool SharedSums::progress() {
  bool moved = false;
  int steps = 0;
  for (int looks = 0; !empty() && looks < kLooks && steps < kSteps; ++looks) {
    const bool copied = copy();
    const bool added = add();
    const bool taken = take();
    if (copied || added || taken) {
      moved = true;
      looks = 0;
      ++steps;
    }
  }
  return moved;
}

// The place that the block is copied to is free: this process has taken the block that was there,
// so all have added their parts of it.
bool SharedSums::copy() {
  if (waiting_.empty() || blocks_.size() == kInFlight) {
    return false;
  }
  Sum& sum = waiting_.front();
  Block block{sum.rest.first(std::min(kBlock, sum.rest.size())), nullptr};
  sum.rest = sum.rest.subspan(block.values.size());
  if (sum.rest.empty()) {
    block.done = std::move(sum.done);
    waiting_.pop_front();
  }
  const Range own = part(block, self_);
  const float* const values = block.values.data();
  float* const copy = copies(self_, copied_);
  std::copy(values, values + own.begin, copy);
  std::copy(values + own.end, values + block.values.size(), copy + own.end);
  blocks_.push_back(std::move(block));
  progress_of(self_).copied.store(++copied_, std::memory_order_release);
  return true;
}

// The place that the sum is written to is free: a process that has copied this block has taken the
// block two before it.
bool SharedSums::add() {
  if (added_ == copied_ || !all_have(&Progress::copied, added_ + 1)) {
    return false;
  }
  const Block& block = blocks_[added_ - taken_];
  const Range own = part(block, self_);
  const auto term = [&](std::size_t m) {
    return m == self_ ? block.values.data() : copies(m, added_);
  };
  float* const sum = sums(self_, added_);
  for (std::int64_t begin = own.begin; begin < own.end; begin += kTile) {
    const auto count = static_cast<std::size_t>(std::min(kTile, own.end - begin));
    float* const tile = sum + (begin - own.begin);
    std::copy_n(term(0) + begin, count, tile);
    for (std::size_t m = 1; m < areas_.size(); ++m) {
      const float* const values = term(m) + begin;
      for (std::size_t i = 0; i < count; ++i) {
        tile[i] += values[i];
      }
    }
    std::copy_n(tile, count, block.values.data() + begin);
  }
  progress_of(self_).added.store(++added_, std::memory_order_release);
  return true;
}

bool SharedSums::take() {
  if (taken_ == added_ || !all_have(&Progress::added, taken_ + 1)) {
    return false;
  }
  const Block block = std::move(blocks_.front());
  blocks_.pop_front();
  for (std::size_t i = 1; i < areas_.size(); ++i) {
    const std::size_t rank = (self_ + i) % areas_.size();
    const Range theirs = part(block, rank);
    std::copy_n(sums(rank, taken_), theirs.size(), block.values.data() + theirs.begin);
  }
  ++taken_;
  if (block.done) {
    block.done();
  }
  return true;
}

bool SharedSums::all_have(std::atomic<std::uint64_t> Progress::*count, std::uint64_t blocks) const {
  for (std::size_t m = 0; m < areas_.size(); ++m) {
    if ((progress_of(m).*count).load(std::memory_order_acquire) < blocks) {
      return false;
    }
  }
  return true;
}

Range SharedSums::part(const Block& block, std::size_t rank) const {
  return part_of({0, static_cast<std::int64_t>(block.values.size())},
                 static_cast<std::int64_t>(areas_.size()), static_cast<std::int64_t>(rank));
}

SharedSums::Progress& SharedSums::progress_of(std::size_t rank) const {
  return *std::launder(reinterpret_cast<Progress*>(areas_[rank]));
}

float* SharedSums::copies(std::size_t rank, std::uint64_t block) const {
  return reinterpret_cast<float*>(areas_[rank] + sizeof(Progress)) + block % kInFlight * kBlock;
}

float* SharedSums::sums(std::size_t rank, std::uint64_t block) const {
  return reinterpret_cast<float*>(areas_[rank] + sizeof(Progress)) + kInFlight * kBlock +
         block % kInFlight * longest_part(areas_.size());
}

}  // namespace sluice
