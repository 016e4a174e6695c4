#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/range.h"
#include "base/zeroed_buffer.h"
#include "codecs/sparse.h"

namespace sluice {

// Records when each parameter last changed, so that every reader can get what it has missed.
class ChangeLog {
 public:
  // Starts counting at `updates`.
  explicit ChangeLog(std::size_t parameters, std::uint64_t updates = 0)
      : now_(updates), changed_(parameters) {}

  void note(const Range& range, const SparseView& entries) {
    ++now_;
    const auto changed = part(range);
    for (std::size_t e = 0; e < entries.entries(); ++e) {
      changed[entries.position(e)] = now_;
    }
  }

  // Positions in the range, ascending, that have changed since this reader last asked.
  std::vector<std::uint32_t> news(NodeId reader, const Range& range) {
    const auto changed = part(range);
    std::uint64_t& seen = seen_[{reader, range.begin}];
    std::vector<std::uint32_t> positions;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (changed[i] > seen) {
        positions.push_back(static_cast<std::uint32_t>(i));
      }
    }
    seen = now_;
    return positions;
  }

  // From now on this reader has seen what the other one has.
  void treat_alike(NodeId reader, NodeId other) {
    std::erase_if(seen_, [&](const auto& of) { return of.first.first == reader; });
    const auto seen = seen_;
    for (const auto& [of, updates] : seen) {
      if (of.first == other) {
        seen_[{reader, of.second}] = updates;
      }
    }
  }

 private:
  std::span<std::uint64_t> part(const Range& range) const {
    return changed_.values().subspan(static_cast<std::size_t>(range.begin),
                                     static_cast<std::size_t>(range.size()));
  }

  std::uint64_t now_;                   // updates of all ranges; a long run exceeds 32 bits
  ZeroedArray<std::uint64_t> changed_;  // by parameter
  std::map<std::pair<NodeId, std::int64_t>, std::uint64_t> seen_;  // by reader and range
};

}  // namespace sluice
