#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

#include "base/check.h"
#include "protocol/work.h"
#include "state/coder.h"

namespace sluice {

// The sources of a work, packed or not, to be read block by block.
class Sources {
 public:
  // The coder is used if the work is coded.
  Sources(const Work& work, const Coder* coder)
      : sources_(work.sources), coder_(work.coded ? coder : nullptr) {
    for (const Payload& source : sources_) {
      if (coder_ != nullptr) {
        coder_->check_size(source.bytes(), work.range);
      } else {
        check(source.size() == work.range.size() * kFloatBytes, "a source covers its range");
      }
    }
  }

  std::size_t size() const { return sources_.size(); }

  // Values from `first` on; a coded source is read from a multiple of DenseCodec::kCut on.
  void copy(std::size_t source, std::size_t first, std::span<float> to) const {
    if (coder_ != nullptr) {
      coder_->read(sources_[source].bytes(), first, to);
    } else {
      std::ranges::copy(sources_[source].values().subspan(first, to.size()), to.begin());
    }
  }
  // sum += the same
  void add_to(std::span<float> sum, std::size_t source, std::size_t first) const {
    if (coder_ != nullptr) {
      coder_->add(sources_[source].bytes(), first, sum);
    } else {
      const auto values = sources_[source].values().subspan(first, sum.size());
      std::ranges::transform(sum, values, sum.begin(), std::plus<>());
    }
  }

 private:
  std::span<const Payload> sources_;
  const Coder* coder_;
};

// Both work on a part of the range of a work, which begins at value `offset` of it.
//
// total <- the sum of the sources in their order, after `begun` unless that is empty.
void sum_into(std::span<float> total, std::span<const float> begun, const Sources& sources,
              std::size_t offset);
// own <- the sum of own and the sources, as WorkKind::kReduce says.
void reduce_into(std::span<float> own, const Work& work, const Sources& sources,
                 std::size_t offset);

}  // namespace sluice
