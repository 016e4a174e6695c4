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

// Sums among the processes of one machine, in shared memory. All processes begin the same sums in
// the same order.
//
// The sums are one sequence of blocks, and every process has an area. It copies its values of a
// block into its area. When all have done so, it adds up its own part of the block, in rank order,
// so that the bits depend neither on the number of blocks nor on who was quick. When all have done
// that, it takes the other parts from the areas of the processes that added them. A block is copied
// while the previous one is added. Nobody blocks: what cannot proceed is tried again later.
class SharedSums {
 public:
  static constexpr std::size_t kAlignment = 128;
  static std::size_t area_bytes(std::size_t ranks);

  // `areas` has the area of each process, at the address where this process sees it. Areas may be
  // used again once all processes have ended their sums.
  SharedSums(std::vector<std::byte*> areas, std::size_t self);
  // Initialises an area. Its process calls this before any other uses the area.
  static void prepare(std::byte* area);

  // Replaces the values by the sum, then calls `done`.
  void begin(std::span<float> values, std::function<void()> done);
  // Proceeds for about a millisecond, or until it must wait for others; true if there was anything
  // to do.
  bool progress();
  bool empty() const { return waiting_.empty() && blocks_.empty(); }

 private:
  // How many blocks the process has copied, and of how many it has added up its part.
  struct Progress {
    alignas(kAlignment) std::atomic<std::uint64_t> copied;
    alignas(kAlignment) std::atomic<std::uint64_t> added;
  };
  struct Sum {
    std::span<float> rest;  // not in a block yet
    std::function<void()> done;
  };
  struct Block {
    std::span<float> values;
    std::function<void()> done;  // set in the last block of a sum
  };

  bool copy();
  bool add();
  bool take();
  bool all_have(std::atomic<std::uint64_t> Progress::*count, std::uint64_t blocks) const;
  // Which values of a block the process adds.
  Range part(const Block& block, std::size_t rank) const;
  Progress& progress_of(std::size_t rank) const;
  // At most two blocks are in flight, and each has its place.
  float* copies(std::size_t rank, std::uint64_t block) const;
  float* sums(std::size_t rank, std::uint64_t block) const;

  std::vector<std::byte*> areas_;
  std::size_t self_;
  std::deque<Sum> waiting_;
  std::deque<Block> blocks_;  // copied and not taken
  std::uint64_t copied_;
  std::uint64_t added_;
  std::uint64_t taken_;
};

}  // namespace sluice
