#pragma once

#include <span>

#include "protocol/payload.h"
#include "protocol/work.h"

namespace sluice {

// What elastic steps and gossip make of two replicas; protocol/work.h has the formulas.
// `parameters` are the node's own, of the work's range.

// WorkKind::kBlend
void blend(std::span<float> parameters, const Work& work);
// WorkKind::kElastic
Payload pull(std::span<float> parameters, const Work& work);
// WorkKind::kSwap
Payload mean_of(const Work& work);
// WorkKind::kSwapped
void move(std::span<float> parameters, const Work& work);

}  // namespace sluice
