#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/units.h"
#include "codecs/bits.h"
#include "model/strategy.h"

namespace sluice {

// Numbers of fewer bits. Coding what was decoded gives the same bytes again, so a value may be
// passed on through any number of hops.
//
// A vector may be coded and read in parts, by several threads at a time, with the same bytes: a
// part begins at value `first` of the vector, a multiple of kCut. `bytes` is always the code of the
// whole vector, and as long as encoded_size() says.
class DenseCodec {
 public:
  static constexpr std::size_t kCut = 64;

  virtual ~DenseCodec() = default;

  // What `count` values take.
  virtual Bytes encoded_size(std::int64_t count) const = 0;

  // A vector is coded in three steps: look at all parts, begin, write all parts. Where the code of
  // a value does not depend on the others (there is no range), a part may be written as soon as it
  // was looked at.
  virtual bool has_range() const = 0;
  // Returns the largest magnitude of the part, if there is a range.
  virtual Magnitude look_at(std::span<const float> part, std::size_t first) const = 0;
  virtual void begin(Magnitude largest, std::span<std::byte> bytes) const = 0;
  virtual void write_part(std::span<const float> part, std::size_t first,
                          std::span<std::byte> bytes) const = 0;

  virtual void read_part(std::span<const std::byte> bytes, std::size_t first,
                         std::span<float> part) const = 0;
  // part += scale * decoded
  virtual void add_part(std::span<const std::byte> bytes, std::size_t first, float scale,
                        std::span<float> part) const = 0;

  // The same for a whole vector.
  void encode(std::span<const float> values, std::span<std::byte> bytes) const;
  void decode(std::span<const std::byte> bytes, std::span<float> values) const;
  void add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const;
  // Fails unless so many bytes are the code of so many values.
  void check_sizes(std::size_t values, std::size_t bytes) const;
};

// Calls `take(begin, end)` for one block of a part after the other, each short enough to stay in
// the L1 cache through several passes; they begin at multiples of DenseCodec::kCut.
inline constexpr std::size_t kBlockSize = 1024;
template <class Take>
void in_blocks(std::size_t size, Take take) {
  static_assert(kBlockSize % DenseCodec::kCut == 0);
  for (std::size_t begin = 0; begin < size; begin += kBlockSize) {
    take(begin, std::min(begin + kBlockSize, size));
  }
}

// Each is a file that says what its code loses: truncate16.h, bf16.h, quantise.h.
std::unique_ptr<DenseCodec> make_dense_codec(Codec codec);

}  // namespace sluice
