#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "wire/message.h"

namespace sluice {

// Finds messages that come twice, where each comes once per iteration: of all that agree in kind,
// ends and place (chunk, segment, round), the iterations ascend.
class Repeats {
 public:
  // Whether this message, or a later one of its sequence, has come before.
  bool has(const Message& message) {
    const Key key{static_cast<std::uint32_t>(message.from.index()),
                  static_cast<std::uint32_t>(message.to.index()),
                  static_cast<std::uint32_t>(message.chunk.index()), message.segment,
                  (static_cast<std::uint32_t>(message.kind) << 16U) | message.round};
    const auto [last, is_first] = last_.try_emplace(key, message.iteration);
    if (!is_first && message.iteration <= last->second) {
      return true;
    }
    last->second = message.iteration;
    return false;
  }

 private:
  using Key = std::array<std::uint32_t, 5>;
  struct HashOfKey {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()(
          {reinterpret_cast<const char*>(key.data()), sizeof(Key)});
    }
  };

  std::unordered_map<Key, Iteration, HashOfKey> last_;  // the last iteration of each sequence
};

}  // namespace sluice
