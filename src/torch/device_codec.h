#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "base/range.h"
#include "model/codec.h"

namespace sluice {

// Packs and unpacks chunks of a flat gradient where they are, into the codes of codecs/bf16.h and
// codecs/quantise.h. Everything is queued on the current stream. Neighbours of equal length go
// together, since many small operations take long to queue.
class DeviceCodec {
 public:
  // The chunks are ranges of gradients on this device; with codec bf16 or quantise8.
  DeviceCodec(Codec codec, std::vector<Range> chunks, c10::Device device);

  std::size_t size() const { return chunks_.size(); }
  const Range& range(std::size_t chunk) const { return chunks_[chunk]; }
  // The bytes of a chunk's code, on the device.
  at::Tensor code(std::size_t chunk) const;
  // Of the chunks from `first` up to `last`.
  void pack(std::size_t first, std::size_t last, const at::Tensor& gradients) const;
  void unpack(std::size_t first, std::size_t last, const at::Tensor& gradients) const;

 private:
  // Chunks of equal length, one per row.
  struct Rows {
    std::int64_t offset;  // of the first code, in bytes
    std::int64_t count;
    std::int64_t length;
  };

  template <class Take>
  void for_rows(std::size_t first, std::size_t last, const at::Tensor& gradients, Take take) const;
  std::int64_t stride_of(std::int64_t length) const;
  // The codes of these rows as elements of this type, from `skipped` bytes of each code on.
  at::Tensor elements(const Rows& rows, at::ScalarType type, std::int64_t skipped) const;
  at::Tensor steps(const Rows& rows) const;

  Codec codec_;
  std::vector<Range> chunks_;
  std::vector<std::int64_t> offsets_;
  at::Tensor codes_;
};

}  // namespace sluice
