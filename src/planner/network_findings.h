#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/strategy.h"
#include "planner/link.h"

namespace sluice {

// Something about the network that the user should look at.
struct Finding {
  enum class Kind : std::uint8_t { kSilent, kSlow, kLate, kBelowRate, kSharedAddress };

  Kind kind = Kind::kSilent;
  std::vector<std::size_t> ranks;
  double factor = 0;  // how many times slower than usual; 0 if not applicable
  std::string text;   // what is wrong and what to check
};

inline constexpr std::array kFindingNames{
    Names<Finding::Kind>{Finding::Kind::kSilent, "silent"},
    Names<Finding::Kind>{Finding::Kind::kSlow, "slow"},
    Names<Finding::Kind>{Finding::Kind::kLate, "late"},
    Names<Finding::Kind>{Finding::Kind::kBelowRate, "below-rate"},
    Names<Finding::Kind>{Finding::Kind::kSharedAddress, "shared-address"},
};

inline constexpr double kSlowFactor = 2;       // a link this much slower than usual is reported
inline constexpr double kLateFactor = 5;       // likewise for latency,
inline const Duration kLateBy = from_us(200);  // which must also be this much longer

// "Usual" is the median over all ranks of each rank's best link, so that one slow host counts once
// and not once per link. Links inside a machine are ignored.
std::vector<Finding> findings_of(const Survey& survey, std::span<const Link> links);

}  // namespace sluice
