#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/survey.h"

namespace sluice {

// Deals the pairs out over rounds, so that no machine has two pairs to serve in one of them. The
// machine of each rank is given by its name.
std::vector<std::vector<RankPair>> survey_rounds(std::span<const RankPair> pairs,
                                                 std::span<const std::string> machines);

}  // namespace sluice
