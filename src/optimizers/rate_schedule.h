#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "model/names.h"

namespace sluice {

// How the learning rate goes on after its warm-up.
enum class RateShape : std::uint8_t {
  kConstant,
  kStep,    // drops at given iterations
  kCosine,  // falls along half a cosine to the end of the run
  kLinear,  // falls in a straight line to the end of the run
};

inline constexpr std::array kRateShapeNames{
    Names<RateShape>{RateShape::kConstant, "constant"},
    Names<RateShape>{RateShape::kStep, "step"},
    Names<RateShape>{RateShape::kCosine, "cosine"},
    Names<RateShape>{RateShape::kLinear, "linear"},
};

// A learning rate that warms up gradually and then follows its shape.
struct RateSchedule {
  float base = 0.05F;
  Iteration warmup = 0;               // iterations over which it rises to the base
  float warmup_from = 0;              // share of the base with which it begins to rise
  std::vector<Iteration> drops = {};  // step: iterations after which it drops
  float drop_factor = 0.1F;           // step: by which it is multiplied
  RateShape shape = RateShape::kStep;
  float final_share = 0;   // cosine, linear: share of the base that it ends with
  Iteration end = 0;       // cosine, linear: when it is there
  Iteration steps_of = 1;  // cosine, linear: it changes once in so many iterations

  // For the update that produces the parameters of this iteration; the first is 1.
  float at(Iteration iteration) const;
};

}  // namespace sluice
