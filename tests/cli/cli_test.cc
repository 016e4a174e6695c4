// Runs the program itself: exit codes, one line on standard error, results on standard output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "support/command.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

Outcome sluice(const std::string& arguments, const TemporaryFolder& folder,
               const std::string& environment = "") {
  return run_command(environment + " '" SLUICE_BINARY "' " + arguments, folder);
}
Outcome sluice(const std::string& arguments) { return sluice(arguments, TemporaryFolder()); }

// Bad input: exit code 2, nothing on standard output, and this line on standard error.
void expect_refused(const Outcome& outcome, const std::string& complaint) {
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("sluice: " + complaint));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

TEST(CliTest, AloneItPrintsHelp) {
  const Outcome outcome = sluice("");
  EXPECT_EQ(outcome.code, 0);
  for (const char* command : {"train", "simulate", "presets", "models", "doctor", "lab"}) {
    EXPECT_THAT(outcome.out, HasSubstr(command));
  }
  EXPECT_EQ(outcome.err, "");
}

TEST(CliTest, KnowsItsVersion) {
  EXPECT_THAT(sluice("--version").out, testing::MatchesRegex("sluice [0-9.]+\n"));
}

TEST(CliTest, HelpTellsTheSettings) {
  const Outcome outcome = sluice("train --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("--slice INTEGER"));
  EXPECT_THAT(outcome.out, HasSubstr("--config FILE"));
}

TEST(CliTest, WrongUsageIsOneLineAndCodeTwo) {
  expect_refused(sluice("trian"), "trian: is not known to sluice; did you mean train?");
  expect_refused(sluice("train --slce=5"), "--slce: is not known to train; did you mean --slice?");
  expect_refused(sluice("train surplus"), "surplus: is not known to train");
  expect_refused(sluice("train --slice"), "--slice: ");
  expect_refused(sluice("train --slice many"), "--slice: is \"many\", expected an integer from 1");
  expect_refused(sluice("train --run \"$(printf 'a\\377')\""), "--run: expected text in UTF-8");
  expect_refused(sluice("train --exchange allreduce --partition kvstore"), "partition kvstore");
  expect_refused(sluice("train --preset p3 --partition merged"),
                 "partition merged does not go with exchange ps-broadcast: ");
  expect_refused(sluice("train --preset pipe-sgd --partition merged"),
                 "partition merged does not go with algorithm pipe-sgd: ");
  expect_refused(sluice("train --merge best"), "--merge: is \"best\"");
  expect_refused(sluice("simulate"), "--profile: is missing");
}

TEST(CliTest, BadFilesAreOneLineAndCodeTwo) {
  const TemporaryFolder folder;
  folder.write("good.json",
               R"({"name":"x","batch":1,"layers":[
                   {"name":"L","params":1,"forward_us":1,"backward_us":1}]})");
  folder.write("bad.json", R"({"name":"x","batch":1,"layers":[]})");
  folder.write("good.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  folder.write("bad.toml", "hosts = 2\nbandwidth_gbps = -1\n\"a\\nb\" = 3\n");
  const auto simulate = [&](const std::string& profile, const std::string& cluster) {
    return sluice("simulate --profile " + profile + " --cluster " + cluster, folder);
  };
  expect_refused(simulate("none.json", "good.toml"), "none.json: cannot be read: No such file");
  expect_refused(simulate("bad.json", "good.toml"), "bad.json: layers: is [], expected a list");
  expect_refused(simulate("good.json", "bad.toml"), "bad.toml: \"a\\nb\": is not a known key");
  folder.write("run.toml", "slce = 3\n");
  expect_refused(sluice("train --config run.toml", folder), "run.toml: slce: is not a setting");
}

TEST(CliTest, ALabNeedsACommandAndItsTools) {
  expect_refused(sluice("lab"), "lab: expected a command after --");
  expect_refused(sluice("lab --rate fast -- true"), "--rate: is \"fast\", expected a rate");
  expect_refused(sluice("lab --hosts 0 -- true"), "--hosts: is 0, expected an integer from 1");
  expect_refused(sluice("presets -- true"), "-- true: only lab takes a command");
  const Outcome outcome = sluice("lab -- true", TemporaryFolder(), "PATH=.");
  expect_refused(outcome, "lab: this machine lacks ");
  EXPECT_THAT(outcome.err, HasSubstr("apt-get install iproute2"));
  EXPECT_THAT(outcome.err, HasSubstr("apt-get install openmpi-bin"));
}

constexpr const char* kNet = R"({"name":"net","batch":8,"layers":[
    {"name":"a","params":1000,"forward_us":100,"backward_us":200},
    {"name":"b","params":30,"forward_us":100,"backward_us":200}]})";

TEST(CliThreadsTest, AReplayTrainsAProfile) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const Outcome outcome = sluice(
      "train --model replay:net.json --param-scale 0.1 --time-scale 0.5 --iterations 6 --workers 2 "
      "--json --run run",
      folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json::parse(outcome.out);
  EXPECT_EQ(summary.at("model"), "replay-net");
  EXPECT_EQ(summary.at("parameters"), 103);
  EXPECT_EQ(summary.at("batch"), 8);
  EXPECT_EQ(summary.at("iterations"), 6);
  EXPECT_GT(summary.at("mechanism").at("bytes"), 0);
  EXPECT_NEAR(summary.at("samples_per_s").get<double>(),
              16e6 / summary.at("iteration_us").get<double>(), 1e-3);
  for (const char* key : {"loss", "test_loss", "test_accuracy", "data", "learning_rate"}) {
    EXPECT_FALSE(summary.contains(key)) << key;
  }
  EXPECT_THAT(folder.read("run/metrics.jsonl"), testing::Not(HasSubstr("loss")));
  EXPECT_THAT(folder.read("run/metrics.jsonl"), HasSubstr("\"samples\":96"));
}

TEST(CliThreadsTest, AReplayWithoutJsonHasNoAccuracyEither) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const Outcome outcome = sluice("train --model replay:net.json --iterations 2", folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("iteration"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("accuracy")));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("loss")));
}

TEST(CliTest, AReplayThatCannotBeIsOneLineAndCodeTwo) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto replay = [&](const std::string& more) {
    return sluice("train --model replay:net.json " + more, folder);
  };
  expect_refused(sluice("train --model replay:none.json"), "none.json: cannot be read");
  expect_refused(sluice("train --model replay:"), "profile \"\": there is no such file");
  expect_refused(replay("--param-scale 0"), "--param-scale: is 0, expected a number");
  expect_refused(replay("--time-scale -1"), "--time-scale: is -1, expected a number");
  expect_refused(replay("--epochs 2"), "--epochs: a replay has no data");
  expect_refused(replay("--data synthetic"), "--data: a replay has no data");
  expect_refused(sluice("train --time-scale 2"), "--time-scale: is for --model replay:");
}

TEST(CliTest, TheSimulatorTakesTheScalesToo) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  folder.write("two.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  const auto simulate = [&](const std::string& scales) {
    const Outcome outcome =
        sluice("simulate --profile net.json --cluster two.toml --json " + scales, folder);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const json plain = simulate("");
  const json scaled = simulate("--time-scale 0.5 --param-scale 2");
  EXPECT_EQ(plain.at("compute_us"), 600);
  EXPECT_EQ(scaled.at("compute_us"), 300);
  EXPECT_EQ(scaled.at("mechanism").at("bytes").get<int>(),
            2 * plain.at("mechanism").at("bytes").get<int>());
}

TEST(CliTest, TimesBeyondCountingAreRefused) {
  const TemporaryFolder folder;
  folder.write("big.json", R"({"name":"big","batch":1,"layers":[
      {"name":"a","params":1000000000,"forward_us":1e9,"backward_us":1e9}]})");
  folder.write("slow.toml", "hosts = 2\nbandwidth_gbps = 1e-9\n");
  const auto simulate = [&](const std::string& more) {
    return sluice("simulate --profile big.json --cluster slow.toml " + more, folder);
  };
  expect_refused(simulate("--time-scale 1e6"), "--time-scale: brings the sum of all layers");
  expect_refused(simulate(""), "slow.toml: 2 workers exchange 1e+09 parameters each");
}

// The net of MG-WFBP's Figure 4: layer by layer the channel falls behind, and with the last two
// layers in one message only the first layer's is exposed.
TEST(CliTest, SimulateMergesWhatFallsBehind) {
  const TemporaryFolder folder;
  folder.write("net.json",
               R"({"name":"net","batch":1,"layers":[
                   {"name":"a","params":1,"forward_us":20,"backward_us":10},
                   {"name":"b","params":2,"forward_us":0,"backward_us":10},
                   {"name":"c","params":2,"forward_us":0,"backward_us":2},
                   {"name":"d","params":4,"forward_us":0,"backward_us":10}]})");
  folder.write("channel.toml", "hosts = 2\n[allreduce]\nstartup_us = 6\nns_per_byte = 250\n");
  const std::string with = " --profile net.json --cluster channel.toml";
  const json wfbp = json::parse(sluice("simulate --preset wfbp --json" + with, folder).out);
  EXPECT_DOUBLE_EQ(wfbp.at("iteration_us"), 63);
  EXPECT_FALSE(wfbp.contains("merging"));
  const Outcome outcome = sluice("simulate --preset mg-wfbp --merge greedy --json" + with, folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json merged = json::parse(outcome.out);
  EXPECT_DOUBLE_EQ(merged.at("iteration_us"), 59);
  const json& merging = merged.at("merging");
  EXPECT_EQ(merging.at("groups"), (json{"c..d", "b", "a"}));
  EXPECT_EQ(merging.at("as"), "merged");
  EXPECT_DOUBLE_EQ(merging.at("startup_us"), 6);
  EXPECT_DOUBLE_EQ(merging.at("ns_per_byte"), 250);
  EXPECT_DOUBLE_EQ(merging.at("predicted_us"), 59);
  EXPECT_DOUBLE_EQ(merging.at("iteration_us"), 59);
  EXPECT_THAT(sluice("simulate --preset mg-wfbp --merge greedy" + with, folder).out,
              HasSubstr("c..d, b, a"));
  folder.write("network.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  const Outcome network =
      sluice("simulate --preset mg-wfbp --json --profile net.json --cluster network.toml", folder);
  const json separate = json::parse(network.out).at("merging");
  EXPECT_EQ(separate.at("groups"), (json{"d", "c", "b", "a"}));
  EXPECT_EQ(separate.at("as"), "wfbp");
  EXPECT_THAT(
      sluice("simulate --preset mg-wfbp --profile net.json --cluster network.toml", folder).out,
      HasSubstr("no gain predicted: as wfbp"));
}

TEST(CliTest, ANativeSumNeedsSomebodyWhoMakesIt) {
  const TemporaryFolder folder;
  const Outcome alone = sluice("train --preset wfbp --collective native", folder);
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--collective: native is MPI_Allreduce"));
  EXPECT_THAT(alone.err, HasSubstr("start with mpirun"));

  folder.write("net.json",
               R"({"name":"net","batch":1,"layers":[
                   {"name":"a","params":9,"forward_us":1,"backward_us":1}]})");
  folder.write("network.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  folder.write("channel.toml", "hosts = 2\n[allreduce]\nstartup_us = 6\nns_per_byte = 250\n");
  const std::string task = "simulate --preset wfbp --collective native --json --profile net.json";
  const Outcome network = sluice(task + " --cluster network.toml", folder);
  EXPECT_EQ(network.code, 2);
  EXPECT_THAT(network.err, HasSubstr("this cluster has none"));
  const Outcome channel = sluice(task + " --cluster channel.toml", folder);
  ASSERT_EQ(channel.code, 0) << channel.err;
  EXPECT_EQ(json::parse(channel.out).at("mechanism").at("chunks_by_collective"),
            (json{{"native", 1}}));
}

TEST(CliTest, TrainMeasuresAndThenMerges) {
  const TemporaryFolder folder;
  const Outcome outcome = sluice(
      "train --preset mg-wfbp --model mlp --data synthetic --workers 2 --iterations 20 --json "
      "--run run --trace",
      folder);
  if (outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json summary = json::parse(outcome.out);
  json kept = json::parse(folder.read("run/summary.json"));
  EXPECT_EQ(kept.at("run").at("hosts").size(), 1U);
  kept.erase("run");
  EXPECT_EQ(summary, kept);
  const json& merging = summary.at("merging");
  EXPECT_EQ(merging.at("groups").size(), summary.at("mechanism").at("chunks_per_model"));
  EXPECT_GT(merging.at("startup_us").get<double>() + merging.at("ns_per_byte").get<double>(), 0);
  EXPECT_GT(merging.at("predicted_us"), 0);
  EXPECT_GT(merging.at("iteration_us"), 0);
  EXPECT_EQ(merging.at("replans"), 0);
}

TEST(CliThreadsTest, HostsAndServersAreAsTheUserSays) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  const auto train = [&](const std::string& more) {
    return sluice("train --model replay:net.json --iterations 4 --json " + more, folder);
  };
  expect_refused(train("--workers 4 --workers-per-host 3"),
                 "--workers-per-host: 4 workers do not fill hosts of 3");
  const Outcome alone = train("--workers 4 --workers-per-host 4");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(json::parse(alone.out).at("mechanism").at("bytes"), 0);
  // Without a server beside it every worker's gradients and parameters cross the network.
  const Outcome apart = train("--workers 4 --workers-per-host 2 --servers 3");
  ASSERT_EQ(apart.code, 0) << apart.err;
  EXPECT_EQ(json::parse(apart.out).at("mechanism").at("bytes"), 4 * 2 * 4 * 4 * 1030);
  const Outcome summed = train("--workers 4 --workers-per-host 2 --servers 3 --local-aggregation");
  ASSERT_EQ(summed.code, 0) << summed.err;
  EXPECT_EQ(json::parse(summed.out).at("mechanism").at("bytes"), 4 * 2 * 2 * 4 * 1030);
  EXPECT_GT(json::parse(summed.out).at("mechanism").at("gradients_summed_locally"), 0);
}

// A worker computes or waits, and every wait has a cause.
TEST(CliTest, TheBreakdownOfAnIterationAddsUp) {
  const TemporaryFolder folder;
  folder.write("net.json", kNet);
  folder.write("pairs.toml", "hosts = 2\nworkers_per_host = 2\nbandwidth_gbps = 0.1\n");
  for (const char* more : {"", " --local-aggregation"}) {
    const Outcome outcome = sluice(
        std::string("simulate --profile net.json --cluster pairs.toml --json") + more, folder);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json summary = json::parse(outcome.out);
    const json& parts = summary.at("breakdown");
    double sum = 0;
    for (const char* part : {"computation_us", "local_aggregation_us", "global_aggregation_work_us",
                             "global_aggregation_wait_us", "communication_exposed_us"}) {
      sum += parts.at(part).get<double>();
    }
    EXPECT_NEAR(sum, summary.at("iteration_us").get<double>(), 1e-3);
    EXPECT_NEAR(parts.at("computation_us").get<double>(), 600, 1e-3);
    EXPECT_GT(parts.at("communication_exposed_us"), 0);
  }
}

TEST(CliTest, PresetsAreATableOrJson) {
  EXPECT_THAT(sluice("presets").out, HasSubstr("kvstore"));
  const json list = json::parse(sluice("presets --json").out);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(list.at(0).at("name"), "kvstore");
  EXPECT_EQ(list.at(0).at("exchange"), "ps-pull");
}

TEST(CliTest, ModelsAreJson) {
  const json models = json::parse(sluice("models --json").out);
  ASSERT_TRUE(models.is_array());
  for (const json& model : models) {
    EXPECT_FALSE(model.at("name").get<std::string>().empty());
    EXPECT_GT(model.at("parameters"), 0);
    EXPECT_GT(model.at("layers"), 0);
    EXPECT_GT(model.at("forward_flops"), 0);
  }
}

TEST(CliThreadsTest, SyntheticDataFitTheModel) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& more) {
    return sluice("train --workers 2 --batch 2 --iterations 3 --kernels native --json " + more,
                  folder);
  };
  const Outcome outcome =
      train("--data synthetic --model resnet110 --input-size 8 --samples 22 --run run");
  if (outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos) {
    SKIP_AS_INAPPLICABLE(outcome.err);
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("parameters"), 1'727'962);
  EXPECT_EQ(json::parse(outcome.out).at("kernels"), "native");
  EXPECT_THAT(folder.read("run/config.toml"), HasSubstr("input-size = 8  # from flag"));
  // 11 samples per worker: five batches of 2 and one of 1.
  for (const char* samples : {"4", "8", "12"}) {
    EXPECT_THAT(folder.read("run/metrics.jsonl"), HasSubstr(std::string("\"samples\":") + samples));
  }
  EXPECT_EQ(json::parse(outcome.out).at("learning_rate"), 0.05);
  const Outcome text = train("--data synthetic --model sockeye --input-size 4 --samples 20");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(json::parse(text.out).contains("test_accuracy"));
  expect_refused(train("--data synthetic --model vgg16 --input-size 31"),
                 "model vgg16: expected samples of shape 3x224x224 or another size from 32 on");
  expect_refused(train("--data synthetic --model lenet --input-size 32"),
                 "model lenet: expected samples of shape 1x28x28, found 1x32x32");
  expect_refused(train("--samples 100"), "--samples: is for --data synthetic only");
}

TEST(CliTest, AProfileThatCannotBeIsOneLineAndCodeTwo) {
  const auto profile = [](const std::string& more) {
    return sluice("profile --model lenet --batch 4 --out p.json " + more);
  };
  expect_refused(sluice("profile --model lenet"), "--out: is missing");
  expect_refused(sluice("profile --out p.json"), "--model: is missing");
  expect_refused(profile("--device-flops fast"), "--device-flops: is \"fast\"");
  expect_refused(profile("--out no/p.json"), "--out: there is no folder");
  if (json::parse(sluice("models --json").out).empty()) {
    SKIP_AS_INAPPLICABLE("this build has no models");
  }
  expect_refused(sluice("profile --model lennet --out p.json"), "model lennet: there is no such");
  expect_refused(profile("--device gpu"), "--device: \"gpu\"; expected auto, cpu, cuda");
  expect_refused(profile("--samples-per-s 5"), "--samples-per-s: is for an estimate");
  expect_refused(profile("--device-flops 1e12 --device cpu"), "--device: an estimate measures");
}

TEST(CliTest, AProfileIsForSimulate) {
  const TemporaryFolder folder;
  folder.write("four.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  const auto simulated_from = [&](const std::string& flags) {
    const Outcome made = sluice("profile --model lenet --json --out p.json " + flags, folder);
    EXPECT_EQ(made.code, 0) << made.err;
    const json profile = json::parse(made.out);
    EXPECT_EQ(profile.at("parameters"), 431'080);
    const Outcome run = sluice("simulate --profile p.json --cluster four.toml --json", folder);
    EXPECT_EQ(run.code, 0) << run.err;
    const json summary = json::parse(run.out);
    EXPECT_EQ(summary.at("profile"), "lenet");
    EXPECT_NEAR(summary.at("compute_us"),
                profile.at("forward_us").get<double>() + profile.at("backward_us").get<double>(),
                1e-3);
    return profile;
  };
  if (json::parse(sluice("models --json").out).empty()) {
    SKIP_AS_INAPPLICABLE("this build has no models");
  }
  const json measured = simulated_from("--batch 4 --device cpu --kernels native");
  EXPECT_EQ(measured.at("estimated"), false);
  EXPECT_EQ(measured.at("device"), "cpu");
  EXPECT_THAT(folder.read("p.json"), HasSubstr("kernels native"));
  const json estimated = simulated_from(
      "--batch 32 --device-flops 5.3e12 --device-bandwidth 2.43e11 --samples-per-s 1234.5 "
      "--device-name P4000 --source 'a paper'");
  EXPECT_EQ(estimated.at("estimated"), true);
  EXPECT_EQ(estimated.at("device"), "P4000");
  EXPECT_NEAR(estimated.at("samples_per_s"), 1234.5, 1e-4);
  EXPECT_THAT(folder.read("p.json"), HasSubstr("scaled to 1234.5 samples/s: a paper"));
}

TEST(CliTest, TheDoctorTellsWhatIsMissing) {
  const json report = json::parse(sluice("doctor --json").out);
  EXPECT_TRUE(report.contains("compiler"));
  const bool has_mpi = report.at("MPI") != "missing";
  EXPECT_NE(report.at("missing").contains("MPI"), has_mpi);
  const bool complete = report.at("missing").empty();
  EXPECT_EQ(sluice("doctor").out.find("what is missing, and how to get it") == std::string::npos,
            complete);
}

TEST(CliTest, AResultThatCannotBeWrittenIsAFailure) {
  const int status = std::system("'" SLUICE_BINARY "' presets >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace sluice
