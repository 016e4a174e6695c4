#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace sluice {

// Drops all samples but the first ones; 0: keeps all.
inline void keep_first(std::int64_t samples, DataSet& set) {
  if (samples > 0 && samples < set.size()) {
    set.labels.resize(static_cast<std::size_t>(samples));
    set.features.resize(static_cast<std::size_t>(samples * set.sample_size()));
    set.features.shrink_to_fit();
  }
}

}  // namespace sluice
