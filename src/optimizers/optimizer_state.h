#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/range.h"
#include "base/units.h"
#include "base/zeroed_buffer.h"
#include "optimizers/update_rule.h"

namespace sluice {

// What an optimiser remembers: named buffers, indexed like the parameters. A node touches only the
// ranges that it updates, so a server's state is that of its shard.
class OptimizerState {
 public:
  struct NamedBuffer {
    std::string_view name;
    ZeroedBuffer values;
  };

  OptimizerState(const UpdateRule& rule, std::size_t parameters) {
    for (const std::string_view name : rule.state()) {
      buffers_.push_back({name, ZeroedBuffer(parameters)});
    }
  }

  const std::vector<NamedBuffer>& buffers() const { return buffers_; }

  // Lies inside the parameters; buffers that the optimiser does not have are empty.
  StateParts part(const Range& range) const {
    StateParts parts;
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      parts[b] = buffers_[b].values.values().subspan(static_cast<std::size_t>(range.begin),
                                                     static_cast<std::size_t>(range.size()));
    }
    return parts;
  }

 private:
  std::vector<NamedBuffer> buffers_;
};

}  // namespace sluice
