#include "nodes/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "nodes/algorithms.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(PresetsTest, EveryPresetMakesSense) {
  std::set<std::string_view> names;
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_TRUE(validate(preset.strategy));
    EXPECT_TRUE(names.insert(preset.name).second);
    EXPECT_EQ(find_preset(preset.name), &preset);
  }
  EXPECT_EQ(find_preset("p4"), nullptr);
}

// Analysis V-B: only those who send gradients send them while backward still runs.
TEST(PresetsTest, ParametersAreSentAfterBackward) {
  for (const Preset& preset : presets()) {
    if (traits_of(preset.strategy.algorithm).sends == Sends::kParameters) {
      EXPECT_EQ(preset.strategy.order, Order::kAfterBackward) << preset.name;
    }
  }
}

// Pipe-SGD, 3.2: truncation and quantisation inside a ring, for D-Sync and for Pipe-SGD.
TEST(PresetsTest, PipeSgdSumsWholeVectors) {
  for (const std::string system : {"d-sync", "pipe-sgd"}) {
    for (const auto& [suffix, codec] :
         {std::pair{"", Codec::kNone}, {"+t", Codec::kTruncate16}, {"+q", Codec::kQuantise8}}) {
      SCOPED_TRACE(system + suffix);
      const Preset* preset = find_preset(system + suffix);
      ASSERT_NE(preset, nullptr);
      EXPECT_EQ(preset->strategy.codec, codec);
      EXPECT_EQ(preset->strategy.partition, Partition::kWhole);
      EXPECT_EQ(preset->strategy.segment_params, 0);
      EXPECT_EQ(preset->strategy.collective, Collective::kRing);
    }
  }
}

// Changes one thing about a preset and returns why that is refused; empty if it is not.
template <class Change>
std::string refusal(std::string_view preset, Change change) {
  Strategy strategy = find_preset(preset)->strategy;
  change(strategy);
  const auto valid = validate(strategy);
  return valid ? "" : valid.error().message();
}

TEST(PresetsTest, PackedParametersAreRefused) {
  for (const char* preset : {"easgd", "gosgd", "ad-psgd"}) {
    for (const Codec codec : {Codec::kTruncate16, Codec::kQuantise8, Codec::kDgc}) {
      EXPECT_THAT(refusal(preset, [&](Strategy& s) { s.codec = codec; }),
                  HasSubstr("sends parameters"));
    }
  }
}

TEST(PresetsTest, PackedGradientsGoWithServersAndSums) {
  for (const char* preset : {"bsp", "asp", "ssp", "kvstore", "p3", "wfbp", "single"}) {
    for (const Codec codec : {Codec::kTruncate16, Codec::kQuantise8, Codec::kDgc}) {
      EXPECT_EQ(refusal(preset, [&](Strategy& s) { s.codec = codec; }), "");
    }
  }
}

TEST(PresetsTest, FewBitsNeedServersAndErrorFeedback) {
  for (const Codec codec : {Codec::kQuantise4, Codec::kQuantise2}) {
    const auto alone = [&](Strategy& s) { s.codec = codec; };
    const auto corrected = [&](Strategy& s) {
      s.codec = codec;
      s.error_feedback = true;
    };
    EXPECT_THAT(refusal("p3", alone), HasSubstr("turn error feedback on"));
    EXPECT_THAT(refusal("wfbp", corrected), HasSubstr("with servers, collective direct"));
    EXPECT_EQ(refusal("streaming-diloco",
                      [&](Strategy& s) {
                        corrected(s);
                        s.collective = Collective::kDirect;
                      }),
              "");
    EXPECT_EQ(refusal("p3", corrected), "");
  }
}

TEST(PresetsTest, ASparseSumTravelsWhole) {
  EXPECT_THAT(refusal("ar-sgd+dgc", [](Strategy& s) { s.collective = Collective::kRing; }),
              HasSubstr("recursive-doubling"));
  EXPECT_EQ(
      refusal("ar-sgd+dgc", [](Strategy& s) { s.collective = Collective::kRecursiveDoubling; }),
      "");
}

TEST(PresetsTest, TopKIsGatheredByAllWorkers) {
  const auto with = [](auto change) {
    return [change](Strategy& s) {
      s.codec = Codec::kTopK;
      s.error_feedback = true;
      change(s);
    };
  };
  const auto as_it_is = with([](Strategy&) {});
  for (const char* preset : {"wfbp", "p3-allreduce", "pipe-sgd", "diloco", "streaming-diloco"}) {
    EXPECT_EQ(refusal(preset, with([](Strategy& s) { s.collective = {}; })), "") << preset;
  }
  EXPECT_THAT(refusal("p3", as_it_is), HasSubstr("no server's sum has such a code"));
  EXPECT_THAT(refusal("d-sync", as_it_is), HasSubstr("codec top-k's codes travel whole"));
  EXPECT_THAT(refusal("wfbp", with([](Strategy& s) { s.error_feedback = false; })),
              HasSubstr("turn error feedback on"));
  EXPECT_THAT(refusal("wfbp", with([](Strategy& s) { s.top_k.kept = 5000; })),
              HasSubstr("no more values than that"));
  EXPECT_THAT(refusal("wfbp", with([](Strategy& s) { s.top_k.bits = 8; })),
              HasSubstr("in 2 bits, or in 32"));
  EXPECT_THAT(refusal("wfbp", [](Strategy& s) { s.top_k.bits = 32; }),
              HasSubstr("are about codec top-k"));
  EXPECT_THAT(refusal("wfbp", [](Strategy& s) { s.feedback_decay = 0.5; }),
              HasSubstr("about what error feedback keeps"));
}

TEST(PresetsTest, ErrorFeedbackNeedsALossyDenseCodec) {
  const auto on = [](Strategy& s) { s.error_feedback = true; };
  EXPECT_EQ(refusal("pipe-sgd+q", on), "");
  EXPECT_THAT(refusal("p3", on), HasSubstr("loses nothing"));
  EXPECT_THAT(refusal("bsp+dgc", on), HasSubstr("by itself"));
}

TEST(PresetsTest, LocalAggregationNeedsWorkersInStep) {
  const auto on = [](Strategy& s) { s.local_aggregation = true; };
  for (const char* preset : {"asp", "ssp", "easgd", "gosgd", "ad-psgd"}) {
    EXPECT_THAT(refusal(preset, on), HasSubstr("step together"));
  }
  EXPECT_EQ(refusal("p3", on), "");
  EXPECT_EQ(refusal("pipe-sgd", on), "");
}

TEST(PresetsTest, UpdatesOfWorkersNeedAllGradients) {
  const auto by_worker = [](Strategy& s) { s.update = Update::kWorker; };
  for (const char* preset : {"p3", "kvstore", "tensorflow", "bsp", "wfbp", "pipe-sgd", "gosgd"}) {
    EXPECT_EQ(refusal(preset, by_worker), "") << preset;
  }
  for (const char* preset : {"asp", "ssp", "easgd"}) {
    EXPECT_THAT(refusal(preset, by_worker), HasSubstr("does not wait for all"));
  }
  EXPECT_THAT(refusal("bsp+dgc", by_worker), HasSubstr("that have changed"));
}

TEST(PresetsTest, UpdatesOfServersNeedServers) {
  const auto by_server = [](Strategy& s) { s.update = Update::kServer; };
  EXPECT_EQ(refusal("p3", by_server), "");
  EXPECT_EQ(refusal("asp", by_server), "");
  EXPECT_THAT(refusal("wfbp", by_server), HasSubstr("has none: workers update"));
  EXPECT_THAT(refusal("gosgd", by_server), HasSubstr("has none: workers update"));
}

TEST(PresetsTest, MergedGoesWithSynchronousAllReducesOnly) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const auto& [algorithm, exchange] =
        std::tie(preset.strategy.algorithm, preset.strategy.exchange);
    const std::string why =
        refusal(preset.name, [](Strategy& s) { s.partition = Partition::kMerged; });
    if (exchange != Exchange::kAllReduce) {
      EXPECT_THAT(why, HasSubstr("weighs the start-up of an all-reduce"));
    } else if (algorithm != Algorithm::kBsp) {
      EXPECT_THAT(why, HasSubstr("the next iteration waits for"));
    } else if (preset.strategy.factored()) {
      EXPECT_THAT(why, HasSubstr("take partition layer"));
    } else {
      EXPECT_EQ(why, "");
    }
  }
}

TEST(PresetsTest, EveryAlgorithmGoesWithTheExchangesOfItsRow) {
  for (const AlgorithmTraits& algorithm : kAlgorithms) {
    for (const auto& [exchange, exchange_name] : kExchangeNames) {
      SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(exchange_name));
      Strategy strategy;
      strategy.algorithm = algorithm.value;
      strategy.exchange = exchange;
      const auto valid = validate(strategy);
      EXPECT_EQ(static_cast<bool>(valid), algorithm.exchanges.contains(exchange));
      if (!valid) {
        EXPECT_THAT(valid.error().message(), HasSubstr(std::string(algorithm.why_no_other)));
      } else if (strategy.uses_servers()) {
        EXPECT_NE(nodes_of(algorithm.value).server, nullptr);
      }
    }
  }
}

TEST(PresetsTest, ARefusalNamesWhatGoes) {
  EXPECT_THAT(refusal("asp", [](Strategy& s) { s.local_aggregation = true; }),
              HasSubstr("take algorithm bsp or pipe-sgd"));
  EXPECT_THAT(refusal("pipe-sgd", [](Strategy& s) { s.partition = Partition::kMerged; }),
              HasSubstr("take algorithm bsp, or partition whole"));
  EXPECT_THAT(
      refusal("p3", [](Strategy& s) { s.error_feedback = true; }),
      HasSubstr("keeps what codec truncate16, bf16, quantise8, quantise4, quantise2, top-k or "
                "powersgd loses"));
}

TEST(PresetsTest, ACadenceFitsTogether) {
  const auto with = [](auto change) {
    return refusal("diloco", [&](Strategy& s) { change(s.cadence); });
  };
  EXPECT_EQ(with([](Cadence& c) { c.fragments = 30; }), "");
  EXPECT_THAT(with([](Cadence& c) { c.fragments = 31; }), HasSubstr("at most 30 fragments"));
  EXPECT_EQ(with([](Cadence& c) { c.delay = 29; }), "");
  EXPECT_THAT(with([](Cadence& c) { c.delay = 30; }), HasSubstr("an outer-delay of at most 29"));
  EXPECT_THAT(with([](Cadence& c) { c.mix = 1; }), HasSubstr("never hear of each other"));
  EXPECT_THAT(with([](Cadence& c) {
                c.outer = Outer::kMean;
                c.momentum = 0.5;
              }),
              HasSubstr("is for outer nesterov"));
  EXPECT_THAT(refusal("streaming-diloco", [](Strategy& s) { s.partition = Partition::kWhole; }),
              HasSubstr("all layers are one chunk"));
}

TEST(PresetsTest, ACadenceIsForLocalSteps) {
  EXPECT_THAT(refusal("wfbp", [](Strategy& s) { s.cadence.every = 4; }),
              HasSubstr("take algorithm local-steps"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.algorithm = Algorithm::kBsp; }),
              HasSubstr("workers of algorithm bsp exchange as it says"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.exchange = Exchange::kBroadcast; }),
              HasSubstr("algorithm easgd with servers"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.codec = Codec::kDgc; }),
              HasSubstr("local steps have used theirs"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.update = Update::kServer; }),
              HasSubstr("has none: workers update"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.local_aggregation = true; }),
              HasSubstr("step together"));
  EXPECT_EQ(refusal("diloco", [](Strategy& s) { s.codec = Codec::kQuantise8; }), "");
}

TEST(PresetsTest, PairsExchangeAllTheyHave) {
  EXPECT_THAT(refusal("noloco", [](Strategy& s) { s.codec = Codec::kQuantise8; }),
              HasSubstr("sends parameters"));
  EXPECT_THAT(refusal("noloco", [](Strategy& s) { s.cadence.synchronous = 1; }),
              HasSubstr("exchange gossip reaches only one"));
  EXPECT_THAT(refusal("diloco", [](Strategy& s) { s.cadence.pull = 0.5; }),
              HasSubstr("take exchange gossip"));
  EXPECT_EQ(refusal("noloco", [](Strategy& s) { s.cadence.pull = 0.5; }), "");
}

TEST(PresetsTest, AnAlgorithmNeedsItsExchange) {
  EXPECT_THAT(refusal("asp", [](Strategy& s) { s.exchange = Exchange::kAllReduce; }),
              HasSubstr("ps-broadcast"));
  EXPECT_THAT(refusal("wfbp", [](Strategy& s) { s.partition = Partition::kKvstore; }),
              HasSubstr("parameter servers"));
}

}  // namespace
}  // namespace sluice
