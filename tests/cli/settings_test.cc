#include "cli/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>

#include "base/check.h"
#include "nodes/presets.h"
#include "support/temporary_folder.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Settings resolve(const Settings::Flags& flags, const std::string& config = "") {
  auto settings = Settings::resolve(Command::kTrain, flags, config);
  check(static_cast<bool>(settings), settings ? "" : settings.error().message());
  return *std::move(settings);
}

std::string complaint(const Settings::Flags& flags, const std::string& config = "") {
  const auto settings = Settings::resolve(Command::kTrain, flags, config);
  return settings ? "" : settings.error().message();
}

TEST(SettingTest, AKeyStandsOnceForEachCommand) {
  for (const Command command : {Command::kTrain, Command::kSimulate, Command::kShow, Command::kLab,
                                Command::kDoctor, Command::kProbe, Command::kProfile,
                                Command::kReport, Command::kCompare, Command::kEvaluate}) {
    std::set<std::string> keys;
    for (const Setting& setting : settings_of(command)) {
      EXPECT_TRUE(keys.insert(setting.key).second) << setting.key;
    }
  }
}

TEST(SettingTest, DefaultsHaveTheirOwnForm) {
  for (const Setting& setting : all_settings()) {
    EXPECT_FALSE(setting.help.empty()) << setting.key;
    if (!setting.fallback.is_null()) {
      EXPECT_TRUE(setting.form.check(setting.fallback)) << setting.key;
    }
  }
}

TEST(SettingsTest, WithoutAWordTheDefaultsHold) {
  const Settings settings = resolve({});
  EXPECT_EQ(settings.text("preset"), "p3");
  EXPECT_EQ(settings.origin("preset").text(), "default");
  EXPECT_EQ(settings.text("order"), "priority");
  EXPECT_EQ(settings.origin("order").text(), "from preset p3");
  EXPECT_EQ(settings.integer("workers"), 4);
  EXPECT_FALSE(settings.on("json"));
}

TEST(SettingsTest, FlagsWinOverConfigOverPresetOverDefault) {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("run.toml", "preset = 'kvstore'\norder = 'priority'\nslice = 7\nlr = 1\n");
  const Settings settings = resolve({{"slice", "9"}}, config);
  EXPECT_EQ(settings.text("exchange"), "ps-pull");
  EXPECT_EQ(settings.origin("exchange").text(), "from preset kvstore");
  EXPECT_EQ(settings.text("order"), "priority");
  EXPECT_EQ(settings.origin("order").text(), "from " + config);
  EXPECT_EQ(settings.integer("slice"), 9);
  EXPECT_EQ(settings.origin("slice").text(), "from flag");
  EXPECT_EQ(settings.number("lr"), 1.0);
  EXPECT_EQ(settings.origin("batch").text(), "default");
  EXPECT_TRUE(settings.warnings().empty());
}

// Analysis, VI-A.
TEST(SettingsTest, ARecipeSetsTheOptimiserAsThePaperHasIt) {
  const Settings settings = resolve({{"recipe", "analysis"}, {"preset", "ad-psgd"}});
  EXPECT_EQ(settings.integer("epochs"), 90);
  EXPECT_EQ(settings.integer("batch"), 128);
  EXPECT_EQ(settings.number("lr"), 0.05) << "a recipe wins over a preset";
  EXPECT_EQ(settings.origin("lr").text(), "from recipe analysis");
  EXPECT_TRUE(settings.on("lr-scale-by-workers"));
  EXPECT_EQ(settings.number("warmup-epochs"), 5);
  EXPECT_EQ(settings.text("lr-decay-epochs"), "30,60,80");
  EXPECT_EQ(settings.number("momentum"), 0.9);
  EXPECT_EQ(settings.number("weight-decay"), 1e-4);
}

TEST(SettingsTest, ARecipeFollowsTheNumberOfEpochsAndGivesWay) {
  const TemporaryFolder folder;
  const std::string config = folder.write("run.toml", "recipe = 'analysis'\nepochs = 18\n");
  const Settings settings = resolve({{"momentum", "0.5"}}, config);
  EXPECT_EQ(settings.integer("epochs"), 18);
  EXPECT_EQ(settings.number("warmup-epochs"), 1);
  EXPECT_EQ(settings.text("lr-decay-epochs"), "6,12,16");
  EXPECT_EQ(settings.number("momentum"), 0.5);
  EXPECT_EQ(resolve({{"epochs", "1"}}, config).text("lr-decay-epochs"), "1,1,1");
  EXPECT_EQ(resolve({}).integer("epochs"), 1) << "without a recipe";
}

// Their names in the settings, and the values that the paper's authors recommend.
TEST(SettingsTest, ThePresetsOfTheAnalysisHaveItsHyperParameters) {
  EXPECT_EQ(resolve({{"preset", "ssp"}}).integer("staleness"), 10);
  EXPECT_EQ(resolve({{"preset", "ssp+dgc"}}).integer("staleness"), 10);
  EXPECT_EQ(resolve({{"preset", "easgd"}}).integer("period"), 8);
  EXPECT_EQ(resolve({{"preset", "gosgd"}}).number("gossip-probability"), 0.01);
  EXPECT_EQ(resolve({{"preset", "asp"}}).number("weight-decay"), 1e-4);
  EXPECT_EQ(resolve({{"preset", "asp"}}).origin("weight-decay").text(), "from preset asp");
  EXPECT_EQ(resolve({{"preset", "p3"}}).number("weight-decay"), 0);
  for (const Preset& preset : sluice::presets()) {
    const bool aggregates = preset.name == "bsp" || preset.name == "bsp+dgc";
    EXPECT_EQ(resolve({{"preset", std::string(preset.name)}}).on("local-aggregation"), aggregates);
  }
}

TEST(SettingsTest, KnowsWhatTheUserChose) {
  const TemporaryFolder folder;
  const std::string usual = resolve({}).to_toml();
  const std::string config = folder.write("run.toml", "credit = 7\n");
  EXPECT_FALSE(resolve({}).is_chosen("slice"));
  EXPECT_FALSE(resolve({}, folder.write("usual.toml", usual)).is_chosen("slice"));
  EXPECT_TRUE(resolve({}, config).is_chosen("credit"));
  EXPECT_TRUE(resolve({{"slice", "50000"}}).is_chosen("slice"));
}

TEST(SettingsTest, AConfigThatHidesThePresetOfAFlagIsWarnedOf) {
  const TemporaryFolder folder;
  const std::string config = folder.write("run.toml", "order = 'fifo'\npartition = 'slice'\n");
  const Settings settings = resolve({{"preset", "p3"}}, config);
  EXPECT_EQ(settings.text("order"), "fifo");
  ASSERT_EQ(settings.warnings().size(), 1U);
  EXPECT_THAT(settings.warnings()[0], HasSubstr("order = \"fifo\" wins over --preset p3"));
  EXPECT_TRUE(resolve({{"preset", "p3"}, {"order", "fifo"}}, config).warnings().empty());
}

TEST(SettingsTest, PresetsGiveTheirStrategy) {
  for (const Preset& preset : sluice::presets()) {
    const Strategy strategy = resolve({{"preset", std::string(preset.name)}}).strategy();
    EXPECT_EQ(strategy.exchange, preset.strategy.exchange) << preset.name;
    EXPECT_EQ(strategy.partition, preset.strategy.partition) << preset.name;
    EXPECT_EQ(strategy.order, preset.strategy.order) << preset.name;
  }
}

TEST(SettingsTest, TheStrategyIsWhatWasSet) {
  const Strategy strategy = resolve({{"exchange", "allreduce"},
                                     {"partition", "whole"},
                                     {"order", "fifo"},
                                     {"slice", "12"},
                                     {"credit", "34"},
                                     {"seed", "56"}})
                                .strategy();
  EXPECT_EQ(strategy.exchange, Exchange::kAllReduce);
  EXPECT_EQ(strategy.partition, Partition::kWhole);
  EXPECT_EQ(strategy.order, Order::kFifo);
  EXPECT_EQ(strategy.slice_params, 12);
  EXPECT_EQ(strategy.credit, 34);
  EXPECT_EQ(strategy.seed, 56U);
}

TEST(SettingsTest, WhatTheLaunchDictatesHolds) {
  Settings settings = resolve({});
  EXPECT_TRUE(settings.dictate("workers", 7, "so it is"));
  EXPECT_EQ(settings.integer("workers"), 7);
  EXPECT_EQ(settings.origin("workers").text(), "from launch");
  Settings agrees = resolve({{"workers", "7"}});
  EXPECT_TRUE(agrees.dictate("workers", 7, "so it is"));
  Settings differs = resolve({{"workers", "3"}});
  const auto refused = differs.dictate("workers", 7, "there are 7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "--workers: is 3 (from flag), but there are 7");
}

TEST(SettingsTest, BadFlagsAreNamed) {
  EXPECT_THAT(complaint({{"slice", "abc"}}),
              StartsWith("--slice: is \"abc\", expected an integer"));
  EXPECT_THAT(complaint({{"slice", "5x"}}), StartsWith("--slice: is \"5x\", expected an integer"));
  EXPECT_THAT(complaint({{"slice", ""}}), StartsWith("--slice: is \"\", expected an integer"));
  EXPECT_THAT(complaint({{"slice", "0"}}), StartsWith("--slice: is 0, expected an integer from 1"));
  EXPECT_THAT(complaint({{"slice", "99999999999999999999"}}), StartsWith("--slice: is \"99999"));
  EXPECT_THAT(complaint({{"lr", "nan"}}), StartsWith("--lr: is nan, expected a number"));
  EXPECT_THAT(complaint({{"lr", "-1"}}), StartsWith("--lr: is -1, expected a number"));
  EXPECT_THAT(complaint({{"json", "maybe"}}), StartsWith("--json: is \"maybe\", expected true"));
  EXPECT_THAT(complaint({{"order", "prority"}}), HasSubstr("did you mean priority?"));
  EXPECT_THAT(complaint({{"preset", "p4"}}), HasSubstr("did you mean p3?"));
  EXPECT_THAT(complaint({{"run", "\xff"}}), StartsWith("--run: expected text in UTF-8"));
}

TEST(SettingsTest, BadConfigsAreNamed) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& text) {
    const std::string message = complaint({}, folder.write("run.toml", text));
    const std::string path = folder.path() / "run.toml";
    EXPECT_THAT(message, StartsWith(path + ": "));
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  EXPECT_EQ(with("slce = 1\n"), "slce: is not a setting; did you mean slice?");
  EXPECT_EQ(with("learning_rate = 1\n"), "learning_rate: is not a setting; did you mean lr?");
  EXPECT_EQ(with("bandwidth = 1\n"), "bandwidth: is not a setting");
  EXPECT_THAT(with("warmup_epochs = -1\n"), StartsWith("warmup_epochs: is -1, expected"));
  EXPECT_EQ(with("peer_credit = 1\npeer-credit = 1\n"),
            "peer_credit: is set twice, with _ and with -");
  EXPECT_THAT(with("slice = 1.5\n"), StartsWith("slice: is 1.5, expected an integer from 1"));
  EXPECT_THAT(with("slice = '1'\n"), StartsWith("slice: is \"1\", expected an integer from 1"));
  EXPECT_THAT(with("json = 1\n"), StartsWith("json: is 1, expected true or false"));
  EXPECT_THAT(with("preset = 'p33'\n"), HasSubstr("did you mean p3?"));
  EXPECT_THAT(with("lr = inf\n"), StartsWith("lr: is inf, expected a number"));
  EXPECT_THAT(with("slice = \n"), StartsWith("is not TOML: line 1"));
  EXPECT_THAT(complaint({}, folder.path() / "none"), HasSubstr("none: cannot be read"));
}

TEST(SettingsTest, KeysOfAFileMayHaveUnderscores) {
  const TemporaryFolder folder;
  const std::string config = folder.write("run.toml", "warmup_epochs = 2\npeer-credit = 3\n");
  EXPECT_EQ(resolve({}, config).number("warmup-epochs"), 2);
  EXPECT_EQ(resolve({}, config).integer("peer-credit"), 3);
}

TEST(SettingsTest, OneFileServesSeveralCommands) {
  const TemporaryFolder folder;
  const std::string config = folder.write("run.toml", "profile = 'p'\ncluster = 'c'\nbatch = 3\n");
  EXPECT_EQ(resolve({}, config).integer("batch"), 3);
  const auto simulate = Settings::resolve(Command::kSimulate, {}, config);
  ASSERT_TRUE(simulate);
  EXPECT_EQ(simulate->text("profile"), "p");
}

TEST(SettingsTest, SomeThingsMustBeSaid) {
  const auto settings = Settings::resolve(Command::kProfile, {{"out", "p.json"}}, "");
  ASSERT_FALSE(settings);
  EXPECT_THAT(settings.error().message(), StartsWith("--model: is missing"));
}

TEST(SettingsTest, UnknownKeysInTheProgramAreDefects) {
  EXPECT_THROW(resolve({}).text("profile"), InvariantError);
}

TEST(SettingsTest, TomlTellsValuesAndOrigins) {
  const std::string toml = resolve({{"slice", "9"}}).to_toml();
  EXPECT_THAT(toml, HasSubstr("slice = 9  # from flag\n"));
  EXPECT_THAT(toml, HasSubstr("order = \"priority\"  # from preset p3\n"));
  EXPECT_THAT(toml, HasSubstr("workers = 4  # default\n"));
}

TEST(SettingsTest, TomlDoesNotLeadAnotherRunToTheSamePlace) {
  const TemporaryFolder folder;
  const std::string toml = resolve({{"run", "here"}, {"trace", "t.json"}}).to_toml();
  EXPECT_THAT(toml, HasSubstr("# run = \"here\"  # from flag\n"));
  EXPECT_THAT(toml, HasSubstr("# trace = \"t.json\"  # from flag\n"));
  const Settings again = resolve({}, folder.write("config.toml", toml));
  EXPECT_EQ(again.text("run"), "");
  EXPECT_EQ(again.text("trace"), "");
}

TEST(SettingsTest, AFileThatAConfigNamesMayStandBesideIt) {
  const TemporaryFolder folder;
  const std::string cluster = folder.write("four.toml", "hosts = 4\n");
  const std::string config =
      folder.write("run.toml", "profile = 'elsewhere.json'\ncluster = 'four.toml'\n");
  const auto settings = Settings::resolve(Command::kSimulate, {}, config);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->path("cluster"), cluster);
  EXPECT_EQ(settings->path("profile"), "elsewhere.json");
  const auto flags = Settings::resolve(Command::kSimulate,
                                       {{"profile", "p.json"}, {"cluster", "four.toml"}}, config);
  ASSERT_TRUE(flags);
  EXPECT_EQ(flags->path("cluster"), "four.toml");
  EXPECT_THAT(settings->to_toml({{"cluster", "copy.toml"}}),
              HasSubstr("cluster = \"copy.toml\"  # copy of four.toml, from " + config));
}

std::string without_origins(const std::string& toml) {
  std::istringstream lines(toml);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# ")) {
      text += line.substr(0, line.rfind("  # ")) + "\n";
    }
  }
  return text;
}

RC_GTEST_PROP(SettingsProperty, TomlIsReadBackAsItWas, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
  const auto written = Settings::resolve(
      Command::kTrain,
      {{"preset", *rc::gen::element<std::string>("kvstore", "slicing", "p3", "wfbp")},
       {"run", *letters},
       {"model", *letters + "\x7f\n\"'\\ü"},
       {"slice", std::to_string(*rc::gen::inRange(1, 1'000'000'000))},
       {"lr", std::to_string(*rc::gen::inRange(0, 1'000'000) * 1e-6)},
       {"momentum", *rc::gen::element<std::string>("0", "1", "0.5", "1e-300", "0.1")},
       {"json", *rc::gen::element<std::string>("true", "false")}},
      "");
  RC_ASSERT(static_cast<bool>(written));
  const TemporaryFolder folder;
  const auto read =
      Settings::resolve(Command::kTrain, {}, folder.write("config.toml", written->to_toml()));
  RC_ASSERT(static_cast<bool>(read));
  RC_ASSERT(without_origins(read->to_toml()) == without_origins(written->to_toml()));
  RC_ASSERT(read->text("model") == written->text("model"));
}

TEST(SettingsTest, OddFileNamesDoNotBreakTheRecord) {
  const TemporaryFolder folder;
  const std::string config = folder.write("a\nslice = 3", "slice = 5\n");
  const std::string copy = folder.write("config.toml", resolve({}, config).to_toml());
  EXPECT_EQ(resolve({}, copy).integer("slice"), 5);
}

}  // namespace
}  // namespace sluice::cli
