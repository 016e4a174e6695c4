// Runs the program itself: exit codes, one line on standard error, results on standard output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
  expect_refused(sluice("simulate"), "--cluster: is missing");
  expect_refused(sluice("simulate --cluster c.toml"), "--profile: is missing");
  expect_refused(sluice("simulate --cluster c.toml --train --model net.pt"),
                 "--profile: is missing");
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
  expect_refused(sluice("presets -- true"), "-- true: only launch and lab take a command");
  const Outcome outcome = sluice("lab -- true", TemporaryFolder(), "PATH=.");
  expect_refused(outcome, "lab: this machine lacks ");
  EXPECT_THAT(outcome.err, HasSubstr("apt-get install iproute2"));
  EXPECT_THAT(outcome.err, HasSubstr("apt-get install openmpi-bin"));
}

TEST(CliTest, ANativeSumNeedsSomebodyWhoMakesIt) {
  const TemporaryFolder folder;
  const Outcome alone = sluice("train --preset wfbp --collective native", folder);
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("collective: native is MPI_Allreduce"));
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

TEST(CliThreadsTest, AnOptimiserFromFlagsUpdatesWhereItIsTold) {
  const TemporaryFolder folder;
  const std::string command =
      "train --model mlp --data synthetic --kernels native --iterations 6 --workers 2 --batch 8 "
      "--json --optimizer adamw --lr-schedule cosine --accumulate 2 ";
  json hashes;
  for (const std::string where : {"server", "worker"}) {
    const Outcome outcome = sluice(command + "--clip-value 0.5 --update " + where, folder);
    if (outcome.code == 2 && outcome.err.find("LibTorch") != std::string::npos) {
      SKIP_AS_INAPPLICABLE(outcome.err);
    }
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json summary = json::parse(outcome.out);
    const json& optimizer = summary.at("optimizer");
    EXPECT_EQ(optimizer.at("name"), "adamw");
    EXPECT_EQ(optimizer.at("clip_value"), 0.5);
    hashes.push_back(summary.at("parameters_hash"));
  }
  EXPECT_EQ(hashes[0], hashes[1]) << "where the update happens changes no bit";
  const std::string by_norm = command + "--clip-norm 1 --precision bf16 --update ";
  const Outcome clipped = sluice(by_norm + "worker", folder);
  ASSERT_EQ(clipped.code, 0) << clipped.err;
  const json summary = json::parse(clipped.out);
  EXPECT_EQ(summary.at("precision"), "bf16");
  EXPECT_EQ(summary.at("optimizer").at("clip_norm"), 1);
  EXPECT_GE(summary.at("optimizer").at("clip_norm_us"), 0) << "what it costs to see all gradients";
  expect_refused(sluice(by_norm + "server", folder), "clip-norm does not go with");
  expect_refused(sluice(command + "--update elsewhere", folder), "--update: is \"elsewhere\"");
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
  expect_refused(train("--data text --samples 100"),
                 "--samples: is for --data fashion-mnist, coloured-clothes, cifar10, cifar100, "
                 "characters, synthetic only");
}

TEST(CliTest, TheDoctorTellsWhatIsMissing) {
  const json report = json::parse(sluice("doctor --json").out);
  EXPECT_TRUE(report.contains("compiler"));
  const bool has_mpi = report.at("MPI") != "missing";
  EXPECT_NE(report.at("missing").contains("MPI"), has_mpi);
  const bool complete = report.at("missing").empty();
  EXPECT_EQ(sluice("doctor").out.find("what is missing or does not fit") == std::string::npos,
            complete);
}

TEST(CliTest, TheDoctorTellsWhatStartedItAndWhetherThatFits) {
  const json plain = json::parse(sluice("doctor --json").out);
  EXPECT_EQ(plain.at("process manager"), "none");
  const std::string listens = plain.at("listens");
  EXPECT_THAT(listens, HasSubstr("launch --transport tcp does on 127.0.0.1, or"));
  EXPECT_EQ(listens.find("MPI does under a process manager") == std::string::npos,
            plain.at("MPI") == "missing");
  const TemporaryFolder folder;
  const auto started = [&](const std::string& variables) {
    return json::parse(run_command(variables + " '" SLUICE_BINARY "' doctor --json", folder).out);
  };
  const json hydra = started("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=4");
  EXPECT_EQ(hydra.at("process manager"), "MPICH's mpiexec (Hydra): rank 1 of 4");
  const json open_mpi = started("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(open_mpi.at("process manager"), "Open MPI's mpirun: rank 1 of 4");
  if (hydra.at("MPI") != "missing") {
    EXPECT_NE(hydra.at("missing").contains("process manager"),
              open_mpi.at("missing").contains("process manager"))
        << "no MPI understands both";
  }
}

TEST(CliTest, AResultThatCannotBeWrittenIsAFailure) {
  const int status = std::system("'" SLUICE_BINARY "' presets >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace sluice
