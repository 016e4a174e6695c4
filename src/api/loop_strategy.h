#pragma once

#include <sluice/loop.h>

#include "exchange/gradient_exchange.h"

namespace sluice {

// Throws std::invalid_argument for words that no axis has.
GradientExchange::Options exchange_options(const LoopOptions& options);

}  // namespace sluice
