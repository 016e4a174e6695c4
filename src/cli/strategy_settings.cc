#include "cli/strategy_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/setting_table.h"

namespace sluice::cli {
namespace {

// Of codec auto: none, the honest 16 bits, and what the user allows besides.
Result<std::vector<Codec>> codecs_to_choose_from(const Settings& settings) {
  const std::string allowed = settings.text("allow-codecs");
  if (settings.text("codec") != "auto") {
    return allowed.empty()
               ? Result(std::vector<Codec>{})
               : Error(fmt::format("allow-codecs: codec {} leaves nothing to choose; use it with "
                                   "--codec auto",
                                   settings.text("codec")));
  }
  std::vector<Codec> codecs{Codec::kNone, Codec::kBf16};
  for (const std::string& word : split_list(allowed)) {
    const auto codec = value_of(kCodecNames, word);
    if (!codec) {
      return Error(fmt::format("allow-codecs: {}: expected some of {}, separated by commas", word,
                               fmt::join(words_of(kCodecNames), ", ")));
    }
    if (traits_of(*codec).kind == CodecKind::kSparse) {
      return Error(fmt::format(
          "allow-codecs: {} changes how the optimiser's momentum works, so it is not taken without "
          "being named; take --codec {}",
          word, word));
    }
    codecs.push_back(*codec);
  }
  return codecs;
}

}  // namespace

Result<StrategySpec> strategy_spec(const Settings& settings) {
  auto codecs = codecs_to_choose_from(settings);
  if (!codecs) {
    return codecs.error();
  }
  return StrategySpec{.preset = settings.text("preset"),
                      .strategy = settings.strategy(),
                      .chosen = settings.chosen_sizes(),
                      .codecs = *std::move(codecs)};
}

}  // namespace sluice::cli
