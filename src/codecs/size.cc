#include "codecs/size.h"

#include <algorithm>

#include "base/check.h"
#include "codecs/dense.h"
#include "codecs/sparse.h"

namespace sluice {

Bytes coded_size(const Strategy& strategy, std::int64_t params, Iteration iteration) {
  switch (strategy.codec) {
    case Codec::kNone:
      return params * kFloatBytes;
    case Codec::kTruncate16:
    case Codec::kQuantise8:
      return dense_size(strategy.codec, params);
    case Codec::kDgc:
      return sparse_size(static_cast<std::int64_t>(
          strategy.dgc.entries(static_cast<std::size_t>(params), iteration)));
  }
  fail_check("every codec has a size");
}

Bytes merged_size(Bytes bytes, std::int64_t params) { return std::min(bytes, sparse_size(params)); }

}  // namespace sluice
