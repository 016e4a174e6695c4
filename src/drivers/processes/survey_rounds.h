#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/survey.h"

namespace sluice {

// Distributes the pairs over rounds so that no machine is in two pairs of one round. The machine of
// each rank is given by its name.
std::vector<std::vector<RankPair>> survey_rounds(std::span<const RankPair> pairs,
                                                 std::span<const std::string> machines);

}  // namespace sluice
