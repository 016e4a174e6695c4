#include "codecs/size.h"

#include <algorithm>

#include "codecs/block_top_k.h"
#include "codecs/sparse.h"

namespace sluice {

Bytes coded_size(const Strategy& strategy, std::int64_t params, Iteration iteration) {
  const CodecTraits& codec = traits_of(strategy.codec);
  if (codec.kind == CodecKind::kSparse) {
    return sparse_size(static_cast<std::int64_t>(
        strategy.dgc.entries(static_cast<std::size_t>(params), iteration)));
  }
  return codec.kind == CodecKind::kGathered ? BlockTopK(strategy.top_k).size(params)
                                            : codec.size(params);
}

Bytes merged_size(const Strategy& strategy, Bytes bytes, std::int64_t params) {
  return strategy.gathered() ? bytes : std::min(bytes, sparse_size(params));
}

}  // namespace sluice
