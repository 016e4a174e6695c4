#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/units.h"
#include "model/strategy.h"

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

// truncate16: the upper 16 bits of each float. The relative error is below 2^-7. A NaN that
// arithmetic made (a quiet one) stays NaN.
//
// quantise8: a step, then a signed byte of steps for each value. The error is at most half a step,
// which is 1/254 of the largest magnitude. Vectors below 2^-100 become zeros. A vector with a value
// that is not finite becomes NaN throughout: it has no range, and a divergence must not be hidden.
std::unique_ptr<DenseCodec> make_dense_codec(Codec codec);
// encoded_size() of that codec.
Bytes dense_size(Codec codec, std::int64_t count);

}  // namespace sluice
