#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "codecs/bits.h"

namespace sluice {

// A sparse vector in bytes: the number of its entries (u32), their positions in the chunk in
// ascending order (u32 each), their values (float each).
constexpr Bytes sparse_size(std::int64_t entries) { return 4 + 8 * entries; }

// In place of the number of entries, where there is no room for them: look at all values.
inline constexpr std::uint32_t kAllChanged = 0xffff'ffff;

// Bytes that are known to be a sparse vector: positions ascend and lie in the chunk. Reads the
// bytes and does not own them.
class SparseView {
 public:
  // The bytes may come from anyone; the chunk has `length` values.
  static Result<SparseView> parse(std::span<const std::byte> bytes, std::int64_t length);

  std::size_t entries() const { return entries_; }
  std::uint32_t position(std::size_t entry) const { return load<std::uint32_t>(positions_, entry); }
  float value(std::size_t entry) const { return load<float>(values_, entry); }

  // sum += scale * this; `sum` is the whole chunk.
  void add_to(std::span<float> sum, float scale) const;

 private:
  SparseView(std::span<const std::byte> bytes, std::size_t entries, std::int64_t length);

  const std::byte* positions_;
  const std::byte* values_;
  std::size_t entries_;
  std::int64_t length_;
};

// The entries of `chunk` at `positions`, which ascend.
std::vector<std::byte> encode_sparse(std::span<const float> chunk,
                                     std::span<const std::uint32_t> positions);

// The sum as one sparse vector. Where several have an entry, values are added in the order of
// `parts`.
std::vector<std::byte> sum_sparse(std::span<const SparseView> parts);

}  // namespace sluice
