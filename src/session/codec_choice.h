#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/cluster.h"
#include "formats/profile.h"
#include "session/specs.h"

namespace sluice {

// Whether packing pays. The simulator predicts what an iteration takes with each codec, in the same
// way for train and simulate; only where the costs come from differs.

struct CodecForecast {
  Codec codec = Codec::kNone;
  Duration iteration{0};

  bool operator==(const CodecForecast&) const = default;
};

struct CodecChoice {
  bool automatic = false;                // chosen here, not by the user
  Codec codec = Codec::kNone;            // that is taken
  bool with_compute = true;              // else the iteration is the exchange alone
  std::vector<CodecForecast> forecasts;  // codec none first; empty if there is no network
  double code_ns_per_byte = 0;           // of the codec that is taken

  const CodecForecast* of(Codec asked) const;
  bool operator==(const CodecChoice&) const = default;
};

struct CodecQuestion {
  const StrategySpec& strategy;
  const Profile& profile;  // without times if nobody knows them
  const Cluster& cluster;
  // What a codec takes per byte of floats; none: what the cluster says, for all of them.
  std::function<double(Codec)> code_ns_per_byte = {};
};

// Whether there is a question: a codec, or several to choose from.
bool asks_for_codec(const StrategySpec& spec);

// Takes the first of the codecs that is predicted to be the fastest; one that gains less than a
// hundredth is not worth what it loses. If the spec has none to choose from, its own codec is kept.
CodecChoice choose_codec(const CodecQuestion& question);

// The strategy with a codec, and what that codec needs.
Strategy with_codec(Strategy strategy, Codec codec);

// The strategy as long as nothing is chosen: without a codec, if there is a choice.
Strategy before_choice(const StrategySpec& spec);

// The spec without a question left: with the codec that was chosen, if there was one.
StrategySpec settled(StrategySpec spec, const std::optional<CodecChoice>& choice);

// "quantise8 will save 180 of 640 ms per iteration"
std::string text_of(const CodecChoice& choice);
nlohmann::ordered_json to_json(const CodecChoice& choice);
CodecChoice codec_choice_from(const std::string& text);

}  // namespace sluice
