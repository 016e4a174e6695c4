#include "session/codec_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "drivers/virtual/simulator.h"
#include "nodes/assembly.h"
#include "session/simulated_job.h"

namespace sluice {
namespace {

// The last half counts: enough for iterations that take turns in being short and long.
constexpr Iteration kForecastIterations = 12;
constexpr double kWorthwhile = 0.99;

std::vector<Codec> candidates_of(const StrategySpec& spec) {
  std::vector<Codec> candidates{Codec::kNone};
  const std::vector<Codec> asked =
      spec.codecs.empty() ? std::vector{spec.strategy.codec} : spec.codecs;
  for (const Codec codec : asked) {
    if (std::ranges::find(candidates, codec) == candidates.end()) {
      candidates.push_back(codec);
    }
  }
  return candidates;
}

// None where the strategy cannot have this codec.
std::optional<Duration> forecast(const CodecQuestion& question, Codec codec) {
  StrategySpec spec = question.strategy;
  spec.strategy = with_codec(spec.strategy, codec);
  Cluster cluster = question.cluster;
  if (question.code_ns_per_byte) {
    cluster.code_ns_per_byte = question.code_ns_per_byte(codec);
  }
  auto made = simulated_job(spec, question.profile, cluster);
  if (!made) {
    return std::nullopt;
  }
  Job job = *std::move(made);
  if (job.strategy.partition == Partition::kMerged) {
    plan_groups(job, question.profile, cluster);
  }
  const Assembly assembly = assemble(std::move(job));
  const SimulationResult result = simulate({.profile = question.profile,
                                            .cluster = cluster,
                                            .hosts = assembly.protocols,
                                            .iterations = kForecastIterations,
                                            .channel_order = assembly.job.strategy.order,
                                            .seed = assembly.job.strategy.seed});
  return result.iteration_time();
}

std::string ms_of(Duration time) { return fmt::format("{:.3g}", to_us(time) / 1e3); }

}  // namespace

const CodecForecast* CodecChoice::of(Codec asked) const {
  const auto found = std::ranges::find(forecasts, asked, &CodecForecast::codec);
  return found == forecasts.end() ? nullptr : &*found;
}

bool asks_for_codec(const StrategySpec& spec) {
  return spec.strategy.coded() || !spec.codecs.empty();
}

Strategy with_codec(Strategy strategy, Codec codec) {
  strategy.codec = codec;
  const CodecTraits& traits = traits_of(codec);
  const bool bears = traits.kind != CodecKind::kPlain && traits.kind != CodecKind::kSparse;
  strategy.error_feedback = bears && (strategy.error_feedback || traits.needs_feedback);
  strategy.feedback_decay = strategy.error_feedback ? strategy.feedback_decay : 1;
  strategy.top_k = strategy.gathered() ? strategy.top_k : TopKOptions{};
  strategy.power_rank = strategy.factored() ? strategy.power_rank : kPowerRank;
  return strategy;
}

Strategy before_choice(const StrategySpec& spec) {
  return spec.codecs.empty() ? spec.strategy : with_codec(spec.strategy, Codec::kNone);
}

CodecChoice choose_codec(const CodecQuestion& question) {
  CodecChoice choice{.automatic = !question.strategy.codecs.empty(),
                     .codec = question.strategy.strategy.codec,
                     .with_compute = question.profile.compute() > Duration{0},
                     .forecasts = {}};
  for (const Codec codec : candidates_of(question.strategy)) {
    if (const auto iteration = forecast(question, codec)) {
      choice.forecasts.push_back({codec, *iteration});
    }
  }
  if (choice.automatic && !choice.forecasts.empty()) {
    const CodecForecast* best = choice.forecasts.data();
    for (const CodecForecast& other : choice.forecasts) {
      if (to_us(other.iteration) < kWorthwhile * to_us(best->iteration)) {
        best = &other;
      }
    }
    choice.codec = best->codec;
  }
  choice.code_ns_per_byte = question.code_ns_per_byte && choice.codec != Codec::kNone
                                ? question.code_ns_per_byte(choice.codec)
                                : question.cluster.code_ns_per_byte;
  return choice;
}

StrategySpec settled(StrategySpec spec, const std::optional<CodecChoice>& choice) {
  if (choice && choice->automatic) {
    spec.strategy = with_codec(spec.strategy, choice->codec);
    spec.codecs.clear();
  }
  return spec;
}

std::string text_of(const CodecChoice& choice) {
  const std::string_view name = name_of(kCodecNames, choice.codec);
  const std::string taken = choice.automatic ? fmt::format("codec auto takes {}: ", name) : "";
  if (choice.forecasts.empty()) {
    return fmt::format("{}all hosts are on one machine, where packing saves no time",
                       choice.automatic ? taken : fmt::format("{} does not pay here: ", name));
  }
  const char* const what = choice.with_compute ? "per iteration" : "of exchange per iteration";
  const CodecForecast* const plain = choice.of(Codec::kNone);
  if (choice.codec == Codec::kNone && plain != nullptr) {
    std::string others;
    for (const CodecForecast& other : choice.forecasts) {
      if (other.codec != Codec::kNone) {
        others += fmt::format("{}{} {} ms", others.empty() ? "" : ", ",
                              name_of(kCodecNames, other.codec), ms_of(other.iteration));
      }
    }
    return fmt::format("{}it needs {} ms {} ({})", taken, ms_of(plain->iteration), what, others);
  }
  const CodecForecast* const packed = choice.of(choice.codec);
  if (plain == nullptr || packed == nullptr) {
    return fmt::format("what {} saves is not known", name);
  }
  const double saved = to_us(plain->iteration) - to_us(packed->iteration);
  if (saved <= 0) {
    return fmt::format("{} does not pay here: {} ms {}, {} without it", name,
                       ms_of(packed->iteration), what, ms_of(plain->iteration));
  }
  return fmt::format("{}{} will save {:.3g} of {} ms {}", taken, name, saved / 1e3,
                     ms_of(plain->iteration), what);
}

nlohmann::ordered_json to_json(const CodecChoice& choice) {
  auto forecasts = nlohmann::ordered_json::object();
  for (const CodecForecast& each : choice.forecasts) {
    forecasts[std::string(name_of(kCodecNames, each.codec))] = to_us(each.iteration);
  }
  return {{"codec", name_of(kCodecNames, choice.codec)},
          {"automatic", choice.automatic},
          {"with_compute", choice.with_compute},
          {"predicted_iteration_us", forecasts},
          {"code_ns_per_byte", choice.code_ns_per_byte}};
}

CodecChoice codec_choice_from(const std::string& text) {
  const auto json = nlohmann::ordered_json::parse(text);
  const auto codec_of = [](const std::string& name) {
    const auto codec = value_of(kCodecNames, name);
    check(codec.has_value(), "the leader names a codec");
    return *codec;
  };
  CodecChoice choice{.automatic = json.at("automatic"),
                     .codec = codec_of(json.at("codec")),
                     .with_compute = json.at("with_compute"),
                     .forecasts = {},
                     .code_ns_per_byte = json.at("code_ns_per_byte")};
  for (const auto& [name, us] : json.at("predicted_iteration_us").items()) {
    choice.forecasts.push_back({codec_of(name), from_us(us.get<double>())});
  }
  return choice;
}

}  // namespace sluice
