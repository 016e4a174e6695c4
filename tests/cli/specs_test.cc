#include "cli/specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "support/temporary_folder.h"

namespace sluice::cli {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

Settings train_settings(const Settings::Flags& flags) {
  auto settings = Settings::resolve(Command::kTrain, flags, "");
  check(static_cast<bool>(settings), settings ? "" : settings.error().message());
  return *std::move(settings);
}

TrainSpec spec_of(const Settings::Flags& flags) {
  auto spec = train_spec(train_settings(flags));
  check(static_cast<bool>(spec), spec ? "" : spec.error().message());
  return *std::move(spec);
}

TaskSpec task_of(const Settings::Flags& flags) { return std::get<TaskSpec>(spec_of(flags).work); }

std::string refusal_of(const Settings::Flags& flags) {
  const auto spec = train_spec(train_settings(flags));
  return spec ? "" : spec.error().message();
}

TEST(SpecsTest, WithoutFlagsASpecIsAsAProgramWouldHaveIt) {
  const TrainSpec spec = spec_of({});
  const TrainSpec usual;
  EXPECT_EQ(spec.strategy.preset, usual.strategy.preset);
  EXPECT_EQ(spec.hosts.workers, usual.hosts.workers);
  EXPECT_EQ(spec.hosts.servers, usual.hosts.servers);
  EXPECT_EQ(spec.length.epochs, usual.length.epochs);
  EXPECT_EQ(spec.length.iterations, usual.length.iterations);
  EXPECT_EQ(spec.optimizer.learning_rate, usual.optimizer.learning_rate);
  EXPECT_EQ(spec.optimizer.momentum, usual.optimizer.momentum);
  EXPECT_EQ(spec.optimizer.weight_decay, usual.optimizer.weight_decay);
  EXPECT_EQ(spec.save, usual.save);
  const TaskSpec task = std::get<TaskSpec>(spec.work);
  const TaskSpec usual_task;
  EXPECT_EQ(task.model, usual_task.model);
  EXPECT_EQ(task.batch, usual_task.batch);
  EXPECT_EQ(task.device, usual_task.device);
  EXPECT_EQ(task.kernels, usual_task.kernels);
  EXPECT_EQ(task.loaders, usual_task.loaders);
  EXPECT_EQ(task.data.kind, usual_task.data.kind);
  EXPECT_EQ(task.data.folder, "");
  EXPECT_EQ(task.data.classes, usual_task.data.classes);
  EXPECT_EQ(task.data.vocabulary, usual_task.data.vocabulary);
  EXPECT_EQ(task.data.source, usual_task.data.source);
  EXPECT_EQ(task.data.target, usual_task.data.target);
  EXPECT_EQ(task.data.augment, usual_task.data.augment);
}

TEST(SpecsTest, EveryDataSetThatCanBeAskedForIsKnown) {
  for (const Command command : {Command::kTrain, Command::kProfile}) {
    for (const Setting& setting : settings_of(command)) {
      if (setting.key == "data") {
        for (const std::string& word : setting.form.words()) {
          EXPECT_TRUE(value_of(kDataNames, word)) << word;
        }
      }
    }
  }
}

TEST(SpecsTest, TextBecomesNumbers) {
  EXPECT_THAT(spec_of({{"lr-decay-epochs", "30,60,80"}}).optimizer.decay_epochs,
              ElementsAre(30, 60, 80));
  for (const char* text : {"x", "30,,60", "0", "30;60", "1000001"}) {
    EXPECT_THAT(refusal_of({{"lr-decay-epochs", text}}), StartsWith("--lr-decay-epochs: \""));
  }
  const Settings::Flags file{{"model", "net.pt"}, {"data", "synthetic"}};
  const auto with = [&](Settings::Flags more) {
    more.insert(file.begin(), file.end());
    return more;
  };
  EXPECT_THAT(task_of(with({{"input-shape", "3x32x32"}})).data.input_shape, ElementsAre(3, 32, 32));
  for (const char* text : {"3x", "3x0", "x", "3 32", "1000000x1000000"}) {
    EXPECT_THAT(refusal_of(with({{"input-shape", text}})),
                StartsWith("--input-shape: is \"" + std::string(text) + "\", expected whole"));
  }
  EXPECT_THAT(refusal_of(with({{"input-shape", "2x"}, {"input-words", "20"}})),
              testing::HasSubstr("expected 2xLONGEST"));
}

TEST(SpecsTest, AnOptimizerHasTheDefaultsOfTorch) {
  EXPECT_EQ(spec_of({}).optimizer.optimizer, Optimizer::kSgd);
  const OptimizerSpec adamw = spec_of({{"optimizer", "adamw"}}).optimizer;
  EXPECT_EQ(adamw.optimizer, Optimizer::kAdamW);
  EXPECT_EQ(adamw.learning_rate, 1e-3);
  EXPECT_EQ(adamw.weight_decay, 1e-2);
  EXPECT_EQ(spec_of({{"optimizer", "adam"}, {"preset", "bsp"}}).optimizer.weight_decay, 0);
  EXPECT_EQ(spec_of({{"optimizer", "adagrad"}}).optimizer.options.epsilon, 1e-10);
  EXPECT_EQ(spec_of({{"optimizer", "rmsprop"}}).optimizer.momentum, 0);
  const OptimizerSpec chosen =
      spec_of({{"optimizer", "adam"}, {"lr", "0.5"}, {"beta2", "0.9"}}).optimizer;
  EXPECT_EQ(chosen.learning_rate, 0.5);
  EXPECT_EQ(chosen.options.beta2, 0.9);
  EXPECT_EQ(refusal_of({{"optimizer", "adam"}, {"momentum", "0.5"}}),
            "--momentum: is for --optimizer sgd, rmsprop only, and this one is adam");
  EXPECT_THAT(refusal_of({{"beta1", "0.5"}}),
              StartsWith("--beta1: is for --optimizer adam, adamw"));
}

TEST(SpecsTest, AScheduleTakesWhatHasAnEffectOnIt) {
  const OptimizerSpec cosine =
      spec_of({{"lr-schedule", "cosine"}, {"warmup-iterations", "20"}, {"warmup-from", "0.25"}})
          .optimizer;
  EXPECT_EQ(cosine.schedule, RateShape::kCosine);
  EXPECT_EQ(cosine.warmup_iterations, 20);
  EXPECT_EQ(cosine.warmup_from, 0.25);
  EXPECT_FALSE(spec_of({}).optimizer.warmup_from);
  EXPECT_THAT(spec_of({{"lr-decay-iterations", "5,10"}}).optimizer.decay_iterations,
              ElementsAre(5, 10));
  EXPECT_THAT(refusal_of({{"lr-schedule", "cosine"}, {"lr-decay-epochs", "3"}}),
              testing::HasSubstr("--lr-decay-epochs: has no effect on --lr-schedule cosine"));
  EXPECT_THAT(refusal_of({{"lr-final", "0.5"}}), testing::HasSubstr("cosine and linear"));
}

TEST(SpecsTest, WhatTheUserChoseStaysApartFromWhatIsUsual) {
  EXPECT_FALSE(spec_of({}).strategy.chosen.slice);
  const TrainSpec chosen = spec_of({{"slice", "1000"}});
  EXPECT_TRUE(chosen.strategy.chosen.slice);
  EXPECT_EQ(chosen.strategy.strategy.slice_params, 1000);
  EXPECT_EQ(task_of({{"data", "cifar10"}, {"data-dir", "c10"}}).data.folder, "c10");
  EXPECT_EQ(task_of({{"kernels", "native"}}).kernels, Kernels::kNative);
}

TEST(SpecsTest, AReplayHasAProfileAndNoData) {
  const TemporaryFolder folder;
  folder.write("net.json", "{}");
  const std::string path = folder.path() / "net.json";
  const TrainSpec spec = spec_of({{"model", "replay:" + path}, {"time-scale", "0.5"}});
  const ProfileSpec profile = std::get<ProfileSpec>(spec.work);
  EXPECT_EQ(profile.path, path);
  EXPECT_EQ(profile.time_scale, 0.5);
  EXPECT_EQ(profile.param_scale, 1);
  EXPECT_EQ(refusal_of({{"model", "replay:net.json"}, {"save", "x"}}),
            "--save: a replay learns nothing");
  EXPECT_THAT(refusal_of({{"model", "replay:net.json"}, {"batch", "4"}}),
              StartsWith("--batch: a replay has no data"));
  EXPECT_THAT(refusal_of({{"time-scale", "2"}}), StartsWith("--time-scale: is for --model replay"));
}

TEST(SpecsTest, TheRecordOfAReplayHasItsProfile) {
  const TemporaryFolder folder;
  folder.write("net.json", "{}");
  const RecordSpec record =
      spec_of({{"model", "replay:" + (folder.path() / "net.json").string()}}).record;
  ASSERT_EQ(record.kept.size(), 1U);
  EXPECT_EQ(record.kept[0].name, "profile.json");
  EXPECT_EQ(record.kept[0].text, "{}");
  EXPECT_THAT(record.config, testing::HasSubstr("model = \"replay:profile.json\"  # copy of "));
  EXPECT_TRUE(spec_of({}).record.kept.empty());
  EXPECT_THAT(refusal_of({{"model", "replay:none.json"}}), StartsWith("none.json: cannot be read"));
}

TEST(SpecsTest, AFlagWithoutEffectIsRefused) {
  EXPECT_EQ(refusal_of({{"augment", "true"}}),
            "--augment: is for --data cifar10, cifar100, images, characters only");
  EXPECT_THAT(refusal_of({{"model", "net.pt"}, {"data", "synthetic"}, {"input-size", "8"}}),
              StartsWith("--input-size: is for built-in models"));
  EXPECT_THAT(refusal_of({{"data", "synthetic"}, {"classes", "8"}}),
              StartsWith("--classes: is for a model from a file"));
}

TEST(SpecsTest, ARecordKeepsWhatWasAskedFor) {
  const Settings settings = train_settings({{"run", "r"}, {"trace", "auto"}});
  const RecordSpec record = record_spec(settings);
  EXPECT_EQ(record.folder, "r");
  EXPECT_EQ(record.trace, "auto");
  EXPECT_EQ(record.config, settings.to_toml());
  EXPECT_EQ(agreement_of(settings).at("run"), "\"r\"");
}

}  // namespace
}  // namespace sluice::cli
