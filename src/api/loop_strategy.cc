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
  if (options.slice) {
    if (*options.slice < 1) {
      throw std::invalid_argument(
          fmt::format("slice: is {}, expected at least 1 parameter", *options.slice));
    }
    strategy.slice_params = *options.slice;
    chosen.chosen.slice = true;
  }
  chosen.strategy = strategy;
  return chosen;
}

}  // namespace sluice
