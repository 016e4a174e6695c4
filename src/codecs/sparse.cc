#include "codecs/sparse.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/heap.h"

namespace sluice {
namespace {

constexpr std::size_t kCountBytes = sizeof(std::uint32_t);

std::vector<std::byte> assemble(std::span<const std::uint32_t> positions,
                                std::span<const float> values) {
  const auto entries = static_cast<std::uint32_t>(positions.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(sparse_size(entries)));
  store(bytes.data(), 0, entries);
  const auto after = std::ranges::copy(std::as_bytes(positions), bytes.begin() + kCountBytes).out;
  std::ranges::copy(std::as_bytes(values), after);
  return bytes;
}

}  // namespace

SparseView::SparseView(std::span<const std::byte> bytes, std::size_t entries, std::int64_t length)
    : positions_(bytes.data() + kCountBytes),
      values_(positions_ + entries * sizeof(std::uint32_t)),
      entries_(entries),
      length_(length) {}

Result<SparseView> SparseView::parse(std::span<const std::byte> bytes, std::int64_t length) {
  if (bytes.size() < kCountBytes) {
    return Error(fmt::format("sparse vector: {} bytes, expected {} or more; corrupt in transit",
                             bytes.size(), kCountBytes));
  }
  const auto entries = load<std::uint32_t>(bytes.data(), 0);
  if (static_cast<Bytes>(bytes.size()) != sparse_size(entries)) {
    return Error(
        fmt::format("sparse vector: {} bytes, expected {} for {} entries; corrupt in transit",
                    bytes.size(), sparse_size(entries), entries));
  }
  const SparseView view(bytes, entries, length);
  std::int64_t least = 0;
  for (std::size_t e = 0; e < entries; ++e) {
    const std::int64_t position = view.position(e);
    if (position < least || position >= length) {
      return Error(
          fmt::format("sparse vector, entry {}: position {}, expected {} ... {}; corrupt on its "
                      "way",
                      e, position, least, length - 1));
    }
    least = position + 1;
  }
  return view;
}

void SparseView::add_to(std::span<float> sum, float scale) const {
  check(static_cast<std::int64_t>(sum.size()) == length_, "a sparse vector is added to its chunk");
  for (std::size_t e = 0; e < entries_; ++e) {
    sum[position(e)] += scale * value(e);
  }
}

std::vector<std::byte> encode_sparse(std::span<const float> chunk,
                                     std::span<const std::uint32_t> positions) {
  std::vector<float> values;
  values.reserve(positions.size());
  for (const std::uint32_t position : positions) {
    values.push_back(chunk[position]);
  }
  return assemble(positions, values);
}

std::vector<std::byte> sum_sparse(std::span<const SparseView> parts) {
  // The next entry of each part; the key is its position, then the number of the part.
  Heap<std::uint64_t, std::size_t> next;
  const auto push = [&](std::uint64_t part, std::size_t entry) {
    if (entry < parts[part].entries()) {
      next.push((std::uint64_t{parts[part].position(entry)} << 32U) | part, entry);
    }
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    push(part, 0);
  }
  std::vector<std::uint32_t> positions;
  std::vector<float> values;
  while (!next.empty()) {
    const auto position = static_cast<std::uint32_t>(next.key() >> 32U);
    const std::uint64_t part = next.key() & 0xffff'ffffU;
    const std::size_t entry = next.value();
    next.pop();
    push(part, entry + 1);
    if (positions.empty() || positions.back() != position) {
      positions.push_back(position);
      values.push_back(0);
    }
    values.back() += parts[part].value(entry);
  }
  return assemble(positions, values);
}

}  // namespace sluice
