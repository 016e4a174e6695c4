#include "state/sparse_sources.h"

#include "base/check.h"

namespace sluice {

SparseView parsed(std::span<const std::byte> bytes, const Range& range) {
  const auto view = SparseView::parse(bytes, range.size());
  if (!view) {
    fail_check(view.error().message());
  }
  return *view;
}

std::vector<std::byte> sum_of(const Work& work) {
  std::vector<SparseView> parts;
  for (const Payload& source : work.sources) {
    parts.push_back(parsed(source.bytes(), work.range));
  }
  return sum_sparse(parts);
}

std::vector<std::byte> joined(const Work& work) {
  std::vector<std::byte> all;
  for (const Payload& source : work.sources) {
    all.insert(all.end(), source.bytes().begin(), source.bytes().end());
  }
  return all;
}

std::vector<std::uint32_t> positions_of(const SparseView& sparse) {
  std::vector<std::uint32_t> positions;
  for (std::size_t e = 0; e < sparse.entries(); ++e) {
    positions.push_back(sparse.position(e));
  }
  return positions;
}

}  // namespace sluice
