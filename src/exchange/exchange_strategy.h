#pragma once

#include <string>
#include <vector>

#include "exchange/gradient_exchange.h"
#include "model/strategy.h"
#include "model/topology.h"

namespace sluice {

// What an exchange with these options does, the program making the updates. Throws
// std::invalid_argument for what it cannot do.
Strategy exchange_strategy(const GradientExchange::Options& options, const Topology& topology);

// The axes that the processes must agree on, beside the preset.
std::string axes_of(const GradientExchange::Options& options);

// The names of the presets that sum gradients for the program's own optimizer.
std::vector<std::string> exchange_presets();

}  // namespace sluice
