#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "base/id.h"

namespace sluice {

// A host has gone without which the phase cannot go on.
class LostPeer : public std::runtime_error {
 public:
  // `iteration` is the furthest that this host has worked for; `why` begins with "because".
  LostPeer(std::size_t rank, Iteration iteration, std::string_view why)
      : std::runtime_error(fmt::format("rank {} was lost in iteration {}; training ends {}", rank,
                                       iteration, why)),
        rank(rank),
        iteration(iteration) {}

  std::size_t rank;
  Iteration iteration;
};

}  // namespace sluice
