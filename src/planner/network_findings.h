#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/strategy.h"
#include "planner/link.h"

namespace sluice {

// Something about the network between the ranks that a user should look at.
struct Finding {
  enum class Kind : std::uint8_t { kSilent, kSlow, kLate, kBelowRate, kSharedAddress };

  Kind kind = Kind::kSilent;
  std::vector<std::size_t> ranks;
  double factor = 0;  // how many times slower than usual; 0 where that means nothing
  std::string text;   // what it is and what to check
};

inline constexpr std::array kFindingNames{
    Names<Finding::Kind>{Finding::Kind::kSilent, "silent"},
    Names<Finding::Kind>{Finding::Kind::kSlow, "slow"},
    Names<Finding::Kind>{Finding::Kind::kLate, "late"},
    Names<Finding::Kind>{Finding::Kind::kBelowRate, "below-rate"},
    Names<Finding::Kind>{Finding::Kind::kSharedAddress, "shared-address"},
};

inline constexpr double kSlowFactor = 2;       // from here on a link is said to be slow
inline constexpr double kLateFactor = 5;       // and its latency long
inline const Duration kLateBy = from_us(200);  // if it is so much longer

// Usual is the median over the ranks of what is best for each, so that one slow host does not count
// as often as it has links. Links inside a machine are not judged.
std::vector<Finding> findings_of(const Survey& survey, std::span<const Link> links);

}  // namespace sluice
