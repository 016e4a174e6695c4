#include "session/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nodes/presets.h"
#include "nodes/validate.h"
#include "session/record.h"
#include "session/simulated_job.h"
#include "session/steady_run.h"
#include "support/nets.h"

namespace sluice {
namespace {

using testing::anywhere;
using ::testing::HasSubstr;

struct SomeSetup {
  StrategySpec strategy;
  Profile profile;
  Cluster cluster;
};

double between(double low, double high) {
  return std::pow(10, low + (high - low) * static_cast<double>(*anywhere(0, 100)) / 100);
}

SomeSetup any_set_up() {
  SomeSetup setup;
  const auto layers = *anywhere(1, 6);
  const double compute_us = between(2, 5);
  for (std::int64_t l = 0; l < layers; ++l) {
    const double share = static_cast<double>(*anywhere(1, 10)) / 10 / static_cast<double>(layers);
    setup.profile.layers.push_back({"L" + std::to_string(l),
                                    static_cast<std::int64_t>(between(3, 5.7)),
                                    from_us(compute_us * share), from_us(2 * compute_us * share)});
  }
  setup.cluster.topology = Topology(static_cast<std::size_t>(*anywhere(2, 6)), 1, 0);
  setup.cluster.bandwidth_gbps = between(-0.5, 1.5);
  setup.cluster.code_ns_per_byte = between(-2, 0.5);
  setup.cluster.server_threads = static_cast<int>(*anywhere(1, 4));
  const auto preset = *rc::gen::element<std::string>("p3", "bsp", "wfbp", "p3-allreduce");
  setup.strategy = {.preset = preset,
                    .strategy = find_preset(preset)->strategy,
                    .chosen = {},
                    .codecs = {Codec::kNone, Codec::kBf16, Codec::kQuantise8}};
  return setup;
}

// What simulate says, over more iterations than the prediction has.
double iteration_us(const SomeSetup& setup, Codec codec) {
  StrategySpec spec = setup.strategy;
  spec.strategy = with_codec(spec.strategy, codec);
  Record record = Record::without_folder({});
  const SimulationReport report =
      simulate_steadily({.job = *simulated_job(spec, setup.profile, setup.cluster),
                         .profile = setup.profile,
                         .cluster = setup.cluster,
                         .preset = spec.preset,
                         .iterations = 8},
                        record);
  return report.summary.at("iteration_us");
}

RC_GTEST_PROP(CodecChoiceProperties, AutoIsWithinThreePercentOfTheBestCodec, ()) {
  const SomeSetup setup = any_set_up();
  const CodecChoice choice = choose_codec(
      {.strategy = setup.strategy, .profile = setup.profile, .cluster = setup.cluster});
  double best = iteration_us(setup, Codec::kNone);
  for (const Codec codec : setup.strategy.codecs) {
    best = std::min(best, iteration_us(setup, codec));
  }
  RC_ASSERT(choice.automatic);
  RC_ASSERT(iteration_us(setup, choice.codec) <= 1.03 * best);
}

RC_GTEST_PROP(CodecChoiceProperties, SurvivesTheWayToOtherProcesses, ()) {
  const SomeSetup setup = any_set_up();
  const CodecChoice choice = choose_codec(
      {.strategy = setup.strategy, .profile = setup.profile, .cluster = setup.cluster});
  RC_ASSERT(codec_choice_from(to_json(choice).dump()).codec == choice.codec);
  RC_ASSERT(text_of(codec_choice_from(to_json(choice).dump())) == text_of(choice));
}

// Three hosts, one large layer.
SomeSetup wire_bound(double gbps, double code_ns_per_byte) {
  SomeSetup setup;
  setup.profile.layers.push_back({"only", 1'000'000, from_us(100), from_us(200)});
  setup.cluster.topology = Topology(3, 1, 0);
  setup.cluster.bandwidth_gbps = gbps;
  setup.cluster.code_ns_per_byte = code_ns_per_byte;
  setup.strategy.strategy = find_preset("p3")->strategy;
  return setup;
}

CodecChoice choice_for(const SomeSetup& setup) {
  return choose_codec(
      {.strategy = setup.strategy, .profile = setup.profile, .cluster = setup.cluster});
}

TEST(CodecChoiceTest, ASlowLinkWantsFewBytesAndASlowPackerNone) {
  SomeSetup slow = wire_bound(0.1, 0.1);
  slow.strategy.codecs = {Codec::kNone, Codec::kBf16, Codec::kQuantise8};
  EXPECT_EQ(choice_for(slow).codec, Codec::kQuantise8);
  EXPECT_THAT(text_of(choice_for(slow)), HasSubstr("codec auto takes quantise8"));
  slow.strategy.codecs = {Codec::kNone, Codec::kBf16};
  EXPECT_EQ(choice_for(slow).codec, Codec::kBf16) << "only what is allowed";
  SomeSetup fast = wire_bound(100, 50);
  fast.strategy.codecs = {Codec::kNone, Codec::kBf16, Codec::kQuantise8};
  EXPECT_EQ(choice_for(fast).codec, Codec::kNone);
  EXPECT_THAT(text_of(choice_for(fast)), HasSubstr("codec auto takes none"));
}

TEST(CodecChoiceTest, SaysWhetherTheCodecOfTheUserPaysAndKeepsIt) {
  SomeSetup setup = wire_bound(0.1, 0.1);
  setup.strategy.strategy.codec = Codec::kQuantise8;
  const CodecChoice pays = choice_for(setup);
  EXPECT_EQ(pays.codec, Codec::kQuantise8);
  EXPECT_FALSE(pays.automatic);
  EXPECT_THAT(text_of(pays), HasSubstr("quantise8 will save "));
  setup = wire_bound(100, 50);
  setup.strategy.strategy.codec = Codec::kQuantise8;
  const CodecChoice loses = choice_for(setup);
  EXPECT_EQ(loses.codec, Codec::kQuantise8);
  EXPECT_THAT(text_of(loses), HasSubstr("quantise8 does not pay here: "));
}

// The cost of each codec counts, not that of one for all.
TEST(CodecChoiceTest, WeighsWhatEachCodecTakes) {
  SomeSetup setup = wire_bound(1, 0.1);
  setup.strategy.codecs = {Codec::kNone, Codec::kBf16, Codec::kQuantise8};
  const CodecChoice choice = choose_codec(
      {.strategy = setup.strategy,
       .profile = setup.profile,
       .cluster = setup.cluster,
       .code_ns_per_byte = [](Codec codec) { return codec == Codec::kBf16 ? 0.1 : 50; }});
  EXPECT_EQ(choice.codec, Codec::kBf16);
  EXPECT_EQ(choice.code_ns_per_byte, 0.1);
}

TEST(CodecChoiceTest, FewBitsComeWithErrorFeedback) {
  EXPECT_TRUE(with_codec(Strategy{}, Codec::kQuantise4).error_feedback);
  EXPECT_FALSE(with_codec(Strategy{}, Codec::kBf16).error_feedback);
  Strategy asked;
  asked.error_feedback = true;
  EXPECT_TRUE(with_codec(asked, Codec::kBf16).error_feedback);
  EXPECT_FALSE(with_codec(asked, Codec::kNone).error_feedback) << "there is nothing to feed back";
}

TEST(CodecChoiceTest, ErrorFeedbackIsForTheCodecThatIsChosen) {
  StrategySpec asked;
  asked.codecs = {Codec::kNone, Codec::kBf16};
  asked.strategy.error_feedback = true;
  EXPECT_FALSE(before_choice(asked).error_feedback) << "nothing is packed yet";
  EXPECT_TRUE(validate(before_choice(asked)));
  EXPECT_TRUE(settled(asked, CodecChoice{.automatic = true, .codec = Codec::kBf16, .forecasts = {}})
                  .strategy.error_feedback);
  EXPECT_FALSE(
      settled(asked, CodecChoice{.automatic = true, .forecasts = {}}).strategy.error_feedback);
}

TEST(CodecChoiceTest, WithoutANetworkNothingIsPredicted) {
  EXPECT_THAT(text_of({.automatic = true, .forecasts = {}}), HasSubstr("takes none: all hosts"));
  EXPECT_THAT(text_of({.codec = Codec::kBf16, .forecasts = {}}), HasSubstr("bf16 does not pay"));
}

}  // namespace
}  // namespace sluice
