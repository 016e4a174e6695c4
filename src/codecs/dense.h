#pragma once

#include <cstddef>
#include <cstdint>
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

// Each is a file that says what its code loses: truncate16.h, bf16.h, quantise.h.
std::unique_ptr<DenseCodec> make_dense_codec(Codec codec);

}  // namespace sluice
