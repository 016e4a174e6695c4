#include "api/loop_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/axes.h"
#include "model/codec.h"
#include "model/names.h"
#include "nodes/presets.h"

namespace sluice {
namespace {

// Sets an axis to the value that the user wrote, if he did.
template <class Value, class Axis, std::size_t kCount>
void choose(const char* key, const std::optional<std::string>& word,
            const std::array<Names<Value>, kCount>& names, Axis& axis) {
  if (!word) {
    return;
  }
  const auto value = value_of(names, *word);
  if (!value) {
    std::vector<std::string_view> words;
    for (const auto& [known, name] : names) {
      words.push_back(name);
    }
    throw std::invalid_argument(
        fmt::format("{}: is \"{}\", expected one of {}", key, *word, fmt::join(words, ", ")));
  }
  axis = *value;
}

template <class Number>
void choose(const char* key, const std::optional<Number>& wanted, Number least, Number most,
            Number& value) {
  if (!wanted) {
    return;
  }
  if (!(*wanted >= least && *wanted <= most)) {  // nor if it is NaN
    throw std::invalid_argument(
        fmt::format("{}: is {}, expected {} to {}", key, *wanted, least, most));
  }
  value = *wanted;
}

// What goes together is the exchange's to say.
void choose_cadence(const LoopOptions& options, Cadence& cadence) {
  constexpr std::int64_t kMost = 1'000'000'000;
  choose("every", options.every, std::int64_t{1}, kMost, cadence.every);
  choose("outer", options.outer, kOuterNames, cadence.outer);
  choose("outer_rate", options.outer_rate, 0.0, 1000.0, cadence.rate);
  choose("outer_momentum", options.outer_momentum, 0.0, 1.0, cadence.momentum);
  choose("outer_pull", options.outer_pull, 0.0, 1000.0, cadence.pull);
  choose("outer_delay", options.outer_delay, std::int64_t{0}, kMost, cadence.delay);
  choose("outer_mix", options.outer_mix, 0.0, 1.0, cadence.mix);
  choose("fragments", options.fragments, std::int64_t{1}, kMost, cadence.fragments);
}

}  // namespace

GradientExchange::Options exchange_options(const LoopOptions& options) {
  GradientExchange::Options chosen{
      .preset = options.preset,
      .chose_partition = options.partition.has_value(),
      .record = {.run = options.run, .trace = options.trace, .batch = options.batch}};
  const Preset* preset = find_preset(options.preset);
  if (preset == nullptr) {
    return chosen;  // which the exchange refuses
  }
  Strategy strategy = preset->strategy;
  choose("exchange", options.exchange, kExchangeNames, strategy.exchange);
  choose("partition", options.partition, kPartitionNames, strategy.partition);
  choose("order", options.order, kOrderNames, strategy.order);
  choose("codec", options.codec, kCodecNames, strategy.codec);
  choose("collective", options.collective, kCollectiveNames, strategy.collective);
  choose("slice", options.slice, std::int64_t{1}, std::int64_t{1'000'000'000},
         strategy.slice_params);
  strategy.error_feedback = options.error_feedback.value_or(strategy.error_feedback);
  chosen.chosen.slice = options.slice.has_value();
  choose_cadence(options, strategy.cadence);
  chosen.strategy = strategy;
  return chosen;
}

}  // namespace sluice
