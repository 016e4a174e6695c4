#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/top_k_options.h"

namespace sluice {

// The largest magnitudes of each block of a vector, as SparseLoCo sends them. The last block may be
// shorter. The code of a vector is that of its blocks, one after the other; its length depends on
// that of the vector alone. A block of `length` values, of which `kept` are sent, is
//
//   positions   if not all are sent: in ascending order, by Elias and Fano. With
//               low = floor(log2(length / kept)), the lowest `low` bits of each, then one bit
//               string in which bit (position >> low) + i is set for position i.
//   levels      with 2 bits a value: two magnitudes, as bfloat16
//   values      with 2 bits: the level, and above it the sign; or a float each
//
// Each of the three ends with a whole byte; what is left of it is zero. Of 4,096 values 64 take 64
// bytes for their positions, less than the 96 of a plain list, and 84 in all.
//
// The levels are the means of the magnitudes below the mean magnitude and of the others. If one is
// not finite, what a level stands for is not either: a divergence is not hidden.
class BlockTopK {
 public:
  explicit BlockTopK(const TopKOptions& options);

  // What the code of `count` values takes.
  Bytes size(std::int64_t count) const;
  // The code of `values`; subtracts from them what it says.
  std::vector<std::byte> take(std::span<float> values) const;

  // Whether these bytes, which may come from anyone, are the code of `count` values.
  Result<void> check(std::span<const std::byte> code, std::int64_t count) const;
  // sum += what the code says; fails unless it is one.
  void add(std::span<const std::byte> code, std::span<float> sum) const;

 private:
  struct Layout;

  Layout layout_of(std::size_t length) const;
  void take_block(std::span<float> block, std::byte* code) const;
  // Calls `add(position, value)` for each entry, in ascending order, up to the first that is wrong.
  template <class Add>
  Result<void> read_block(const std::byte* code, std::size_t length, Add add) const;
  template <class Add>
  Result<void> read(std::span<const std::byte> code, std::size_t count, Add add) const;

  std::size_t block_;
  std::size_t kept_;
  bool floats_;
};

}  // namespace sluice
