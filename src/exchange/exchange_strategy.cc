#include "exchange/exchange_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "nodes/presets.h"
#include "nodes/validate.h"

namespace sluice {
namespace {

bool steps_locally(const Strategy& strategy) { return strategy.algorithm == Algorithm::kLocal; }

// The program makes the updates.
Strategy updated_outside(Strategy strategy) {
  if (!steps_locally(strategy)) {
    strategy.update = Update::kWorker;  // of sums
  }
  strategy.learners_update = true;
  return strategy;
}

bool can_exchange(const Strategy& strategy) {
  const Strategy of = updated_outside(strategy);
  return (of.learners_can_update() || of.learners_can_step()) &&
         strategy.partition != Partition::kMerged && !strategy.factored();
}

bool can_sum(const Preset& preset) {
  return can_exchange(preset.strategy) && !steps_locally(preset.strategy) &&
         !preset.strategy.coded();
}

Strategy checked(const Strategy& strategy, const Topology& topology) {
  if (steps_locally(strategy) && strategy.cadence.synchronous > 0) {
    throw std::invalid_argument(
        "synchronous-first is not for a program's own optimizer: for those steps attach the model "
        "with a preset that sums gradients, such as p3-allreduce");
  }
  if (!can_exchange(strategy)) {
    throw std::invalid_argument(fmt::format(
        "algorithm {}, exchange {}, partition {} and codec {} do not sum gradients for the "
        "program's own optimizer: it takes algorithm bsp, an exchange with servers or allreduce, "
        "and a codec that is dense, or algorithm local-steps, and another partition than merged",
        name_of(kAlgorithmNames, strategy.algorithm), name_of(kExchangeNames, strategy.exchange),
        name_of(kPartitionNames, strategy.partition), name_of(kCodecNames, strategy.codec)));
  }
  Strategy sums = updated_outside(strategy);
  if (const auto valid = validate(sums); !valid) {
    throw std::invalid_argument(valid.error().message());
  }
  if (const auto valid = check_driver_sums(sums, topology); !valid) {
    throw std::invalid_argument(valid.error().message());
  }
  return sums;
}

// Few bits need error feedback for all that is packed, and so a sum that packs once.
Strategy with_codec(Strategy strategy, Codec codec) {
  strategy.codec = codec;
  strategy.error_feedback = traits_of(codec).needs_feedback;
  if (strategy.error_feedback && strategy.exchange == Exchange::kAllReduce) {
    strategy.collective = Collective::kDirect;
  }
  return strategy;
}

std::string text_of(const Cadence& cadence) {
  return fmt::format(", every {} in {} fragments, outer {} {} {} {} after {} keeping {}",
                     cadence.every, cadence.fragments, name_of(kOuterNames, cadence.outer),
                     cadence.rate, cadence.momentum, cadence.pull, cadence.delay, cadence.mix);
}

}  // namespace

std::vector<std::string> exchange_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (can_sum(preset)) {
      names.emplace_back(preset.name);
    }
  }
  return names;
}

Strategy exchange_strategy(const GradientExchange::Options& options, const Topology& topology) {
  if (options.strategy) {
    return checked(*options.strategy, topology);
  }
  const Preset* preset = find_preset(options.preset);
  if (preset == nullptr || !can_sum(*preset)) {
    throw std::invalid_argument(
        fmt::format("no preset {} sums gradients for the program's own optimizer; choose one of {}",
                    options.preset, fmt::join(exchange_presets(), ", ")));
  }
  return checked(with_codec(preset->strategy, options.codec), topology);
}

std::string axes_of(const GradientExchange::Options& options) {
  if (!options.strategy) {
    return options.codec == Codec::kNone
               ? ""
               : fmt::format(", packed by {}", name_of(kCodecNames, options.codec));
  }
  const Strategy& strategy = *options.strategy;
  return fmt::format(
      " ({}, {}, {}, {}, {}{}{})", name_of(kExchangeNames, strategy.exchange),
      name_of(kPartitionNames, strategy.partition), name_of(kOrderNames, strategy.order),
      name_of(kCodecNames, strategy.codec),
      strategy.collective ? name_of(kCollectiveNames, *strategy.collective) : "auto",
      options.chosen.slice ? fmt::format(", slices of {}", strategy.slice_params) : "",
      steps_locally(strategy) ? text_of(strategy.cadence) : "");
}

}  // namespace sluice
