#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/range.h"

namespace sluice {

// Sums among the processes of one machine, in memory that they share. All members begin the same
// sums in the same order.
//
// The sums are one sequence of blocks. Every member has an area: into it it copies its values of a
// block; when all have done so, it adds up its own part of the block, in the order of ranks, so
// that the bits depend neither on the number of blocks nor on who was quick; when all have done
// that, it takes the other parts from the areas of those who added them. A block is copied while
// the one before it is added. Nobody waits for anybody: what cannot go on is tried again later.
class SharedSums {
 public:
  static constexpr std::size_t kAlignment = 128;
  static std::size_t area_bytes(std::size_t members);

  // `areas` has the area of each member, at whatever address this process sees it. Areas that have
  // carried sums before may carry more, once all members have ended those.
  SharedSums(std::vector<std::byte*> areas, std::size_t self);
  // Makes an area ready. To be called by its member before any other uses it.
  static void prepare(std::byte* area);

  // The sum takes the place of the values; then `done` is called.
  void begin(std::span<float> values, std::function<void()> done);
  // Goes on for about a millisecond, or until others are to be waited for; true if there was
  // anything to do.
  bool progress();
  bool empty() const { return waiting_.empty() && blocks_.empty(); }

 private:
  // How many blocks its member has copied, and of how many it has added its part.
  struct Progress {
    alignas(kAlignment) std::atomic<std::uint64_t> copied;
    alignas(kAlignment) std::atomic<std::uint64_t> added;
  };
  struct Sum {
    std::span<float> rest;  // of which no block has been made yet
    std::function<void()> done;
  };
  struct Block {
    std::span<float> values;
    std::function<void()> done;  // with the last one of a sum
  };

  bool copy();
  bool add();
  bool take();
  bool all_have(std::atomic<std::uint64_t> Progress::*count, std::uint64_t blocks) const;
  // Which values of a block the member adds.
  Range part(const Block& block, std::size_t member) const;
  Progress& progress_of(std::size_t member) const;
  // Two blocks are in flight at most, and each has its place.
  float* copies(std::size_t member, std::uint64_t block) const;
  float* sums(std::size_t member, std::uint64_t block) const;

  std::vector<std::byte*> areas_;
  std::size_t self_;
  std::deque<Sum> waiting_;
  std::deque<Block> blocks_;  // copied and not taken
  std::uint64_t copied_;
  std::uint64_t added_;
  std::uint64_t taken_;
};

}  // namespace sluice
