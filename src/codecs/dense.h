#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/units.h"

namespace sluice {

// Numbers of fewer bits. Coding what was decoded gives the same bytes again, so a value may be
// passed on through any number of hops.
class DenseCodec {
 public:
  virtual ~DenseCodec() = default;

  // What `count` values take; `bytes` below is always as long as this.
  virtual Bytes encoded_size(std::int64_t count) const = 0;
  virtual void encode(std::span<const float> values, std::span<std::byte> bytes) const = 0;
  virtual void decode(std::span<const std::byte> bytes, std::span<float> values) const = 0;
  // sum += scale * decoded
  virtual void add(std::span<const std::byte> bytes, float scale, std::span<float> sum) const = 0;
};

enum class DenseFormat : std::uint8_t {
  // The upper 16 bits of each float: the relative error is below 2^-7. A NaN that arithmetic made
  // (a quiet one) stays NaN.
  kTruncate16,
  // A step, then a signed byte of steps for each value: the error is at most half a step, which is
  // 1/254 of the largest magnitude. Vectors below 2^-100 become zeros. A vector with a value that
  // is not finite becomes NaN throughout: it has no range, and a divergence must not be hidden.
  kQuantise8,
};

std::unique_ptr<DenseCodec> make_dense_codec(DenseFormat format);

}  // namespace sluice
