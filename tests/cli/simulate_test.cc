// What simulate counts, and what it writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CliSimulateTest : public testing::Test {
 protected:
  CliSimulateTest() {
    folder_.write("net.json", R"({"name":"net","batch":8,"layers":[
        {"name":"a","params":100000,"forward_us":100,"backward_us":200},
        {"name":"b","params":30,"forward_us":100,"backward_us":200}]})");
    folder_.write("two.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  }

  Outcome simulate(const std::string& more) {
    const Outcome outcome = sluice("simulate " + more, folder_);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.path() / name); }

  static constexpr const char* kInput = " --profile net.json --cluster two.toml ";
  TemporaryFolder folder_;
};

// By the preset, by the cluster file, by a flag: the later wins.
TEST_F(CliSimulateTest, ServersAreWhereTheyAreAskedFor) {
  folder_.write("beside.toml", "hosts = 2\nservers = 'per-host'\nbandwidth_gbps = 1\n");
  const auto hosts = [&](const std::string& more) {
    return json::parse(simulate("--profile net.json --json " + more).out).at("hosts").get<int>();
  };
  EXPECT_EQ(hosts("--cluster two.toml --preset bsp"), 2);
  EXPECT_EQ(hosts("--cluster two.toml --preset ps-sync"), 3) << "one more for the server";
  EXPECT_EQ(hosts("--cluster beside.toml --preset ps-sync"), 2);
  EXPECT_EQ(hosts("--cluster two.toml --preset ps-sync --servers 0"), 2);
  EXPECT_EQ(hosts("--cluster beside.toml --preset bsp --servers 3"), 5);
  const Outcome refused =
      sluice("simulate --preset wfbp --servers 1" + std::string(kInput), folder_);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("servers: exchange allreduce has no servers"));
}

TEST_F(CliSimulateTest, CodecAutoTakesWhatPays) {
  folder_.write("fast.toml", "hosts = 2\nbandwidth_gbps = 100\ncode_ns_per_byte = 50\n");
  const auto taken = [&](const std::string& cluster, const std::string& more) {
    const json summary = json::parse(
        simulate("--profile net.json --json --codec auto --cluster " + cluster + more).out);
    EXPECT_EQ(summary.at("codec"), summary.at("codec_choice").at("codec"));
    EXPECT_TRUE(summary.at("codec_choice").at("automatic"));
    return summary.at("codec").get<std::string>();
  };
  EXPECT_EQ(taken("two.toml", ""), "bf16");
  EXPECT_EQ(taken("two.toml", " --allow-codecs quantise8,quantise4"), "quantise4");
  EXPECT_EQ(taken("fast.toml", " --allow-codecs quantise8"), "none");
  const Outcome logged = simulate("--codec auto" + std::string(kInput));
  EXPECT_THAT(logged.err, HasSubstr("codec auto takes bf16: bf16 will save "));
}

TEST_F(CliSimulateTest, SaysWhetherACodecPaysAndHowOftenItPacks) {
  const Outcome packed = simulate("--preset p3 --codec quantise8 --json" + std::string(kInput));
  EXPECT_THAT(packed.err, HasSubstr("quantise8 will save "));
  const json summary = json::parse(packed.out);
  EXPECT_EQ(summary.at("mechanism").at("packings"), 2) << "there and back";
  EXPECT_FALSE(summary.at("codec_choice").at("automatic"));
  const json ring = json::parse(
      simulate("--preset wfbp --codec bf16 --collective ring --json" + std::string(kInput)).out);
  EXPECT_EQ(ring.at("mechanism").at("packings"), 2) << "one for each of two ranks";
  const json plain = json::parse(simulate("--preset p3 --json" + std::string(kInput)).out);
  EXPECT_FALSE(plain.contains("codec_choice"));
  EXPECT_FALSE(plain.at("mechanism").contains("packings"));
}

TEST_F(CliSimulateTest, RefusesCodecsThatCannotBeChosen) {
  const auto refusal = [&](const std::string& flags) {
    const Outcome refused = sluice("simulate " + flags + kInput, folder_);
    EXPECT_EQ(refused.code, 2);
    return refused.err;
  };
  EXPECT_THAT(refusal("--codec auto --allow-codecs quantise9"),
              HasSubstr("allow-codecs: quantise9: expected some of none, truncate16"));
  EXPECT_THAT(refusal("--codec auto --allow-codecs dgc"), HasSubstr("take --codec dgc"));
  EXPECT_THAT(refusal("--codec bf16 --allow-codecs quantise8"),
              HasSubstr("codec bf16 leaves nothing to choose"));
}

TEST_F(CliSimulateTest, CountsJustTheIterationsThatAreAskedFor) {
  const auto run = [&](int iterations) {
    const std::string n = std::to_string(iterations);
    return json::parse(simulate(kInput +
                                ("--preset slicing --slice 5000 --json --iterations " + n) +
                                " --run run" + n)
                           .out);
  };
  const json one = run(1);
  const json many = run(20);
  EXPECT_EQ(many.at("iterations"), 20);
  const std::string rows = folder_.read("run20/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(rows, '\n'), 20);
  for (const char* key : {"messages", "bytes", "overtakings_channel"}) {
    EXPECT_EQ(many.at(key), 20 * one.at(key).get<std::int64_t>()) << key;
  }
  for (const char* key : {"iteration_us", "egress_utilisation", "ingress_utilisation",
                          "messages_per_iteration", "bytes_per_iteration"}) {
    EXPECT_DOUBLE_EQ(many.at(key), one.at(key)) << key;
  }
  EXPECT_EQ(many.at("messages_per_iteration"), one.at("messages"));
  for (const auto& [key, value] : one.at("mechanism").items()) {
    if (value.is_number_integer() && key != "chunks_per_model") {
      EXPECT_EQ(many.at("mechanism").at(key), 20 * value.get<std::int64_t>()) << key;
    }
  }
  EXPECT_EQ(one.at("mechanism").at("updates"), one.at("mechanism").at("chunks_per_model"));
  EXPECT_EQ(one.at("messages"), one.at("mechanism").at("messages"));
  EXPECT_NEAR(many.at("mechanism").at("hidden_share").get<double>(),
              one.at("mechanism").at("hidden_share").get<double>(), 1e-12);
  for (const auto& [key, value] : one.at("breakdown").items()) {
    EXPECT_NEAR(many.at("breakdown").at(key).get<double>(), value.get<double>(), 1e-6) << key;
  }
}

TEST_F(CliSimulateTest, OvertakingsArePerIterationToo) {
  folder_.write("wide.json", R"({"name":"wide","batch":8,"layers":[
      {"name":"a","params":40000,"forward_us":900,"backward_us":1800},
      {"name":"b","params":1200000,"forward_us":300,"backward_us":600}]})");
  folder_.write("four.toml", "hosts = 4\nbandwidth_gbps = 10\n");
  const std::string with = "--preset p3 --profile wide.json --cluster four.toml --iterations 10";
  const json summary = json::parse(simulate(with + " --json").out);
  EXPECT_GT(summary.at("mechanism").at("overtakings_egress"), 0);
  EXPECT_DOUBLE_EQ(summary.at("overtakings_out_per_iteration"),
                   summary.at("mechanism").at("overtakings_egress").get<double>() / 10);
  EXPECT_DOUBLE_EQ(summary.at("overtakings_server_per_iteration"),
                   summary.at("mechanism").at("overtakings_inbox").get<double>() / 10);
  const std::string table = simulate(with).out;
  for (const char* label :
       {"messages per iteration", "bytes per iteration", "overtakings per iteration"}) {
    EXPECT_THAT(table, HasSubstr(label));
  }
}

TEST_F(CliSimulateTest, TakesScales) {
  const json plain = json::parse(simulate(kInput + std::string("--json")).out);
  const json scaled =
      json::parse(simulate(kInput + std::string("--json --time-scale 0.5 --param-scale 2")).out);
  EXPECT_EQ(plain.at("compute_us"), 600);
  EXPECT_EQ(scaled.at("compute_us"), 300);
  EXPECT_EQ(scaled.at("mechanism").at("bytes").get<int>(),
            2 * plain.at("mechanism").at("bytes").get<int>());
}

TEST_F(CliSimulateTest, MicroBatchesShareAnExchange) {
  const json one = json::parse(simulate(kInput + std::string("--json")).out);
  const json four = json::parse(simulate(kInput + std::string("--json --accumulate 4")).out);
  EXPECT_EQ(four.at("compute_us").get<double>(), 4 * one.at("compute_us").get<double>());
  EXPECT_EQ(four.at("bytes_per_iteration"), one.at("bytes_per_iteration"));
  EXPECT_DOUBLE_EQ(
      four.at("samples_per_s").get<double>() * four.at("iteration_us").get<double>(),
      4 * one.at("samples_per_s").get<double>() * one.at("iteration_us").get<double>());
}

TEST_F(CliSimulateTest, TimesBeyondCountingAreRefused) {
  folder_.write("big.json", R"({"name":"big","batch":1,"layers":[
      {"name":"a","params":1000000000,"forward_us":1e9,"backward_us":1e9}]})");
  folder_.write("slow.toml", "hosts = 2\nbandwidth_gbps = 1e-9\n");
  const auto refused = [&](const std::string& more) {
    return sluice("simulate --profile big.json --cluster slow.toml " + more, folder_);
  };
  expect_refused(refused("--time-scale 1e6"), "time-scale: brings the sum of all layers");
  expect_refused(refused(""), "slow.toml: 2 workers exchange 1e+09 parameters each");
}

// The net of MG-WFBP's Figure 4: layer by layer the channel falls behind, and with the last two
// layers in one message only the first layer's is exposed.
TEST_F(CliSimulateTest, MergesWhatFallsBehind) {
  folder_.write("four.json",
                R"({"name":"net","batch":1,"layers":[
                    {"name":"a","params":1,"forward_us":20,"backward_us":10},
                    {"name":"b","params":2,"forward_us":0,"backward_us":10},
                    {"name":"c","params":2,"forward_us":0,"backward_us":2},
                    {"name":"d","params":4,"forward_us":0,"backward_us":10}]})");
  folder_.write("channel.toml", "hosts = 2\n[allreduce]\nstartup_us = 6\nns_per_byte = 250\n");
  const std::string with = " --profile four.json --cluster channel.toml";
  const json wfbp = json::parse(simulate("--preset wfbp --json" + with).out);
  EXPECT_DOUBLE_EQ(wfbp.at("iteration_us"), 63);
  EXPECT_FALSE(wfbp.contains("merging"));
  const json merged = json::parse(simulate("--preset mg-wfbp --merge greedy --json" + with).out);
  EXPECT_DOUBLE_EQ(merged.at("iteration_us"), 59);
  const json& merging = merged.at("merging");
  EXPECT_EQ(merging.at("groups"), (json{"c..d", "b", "a"}));
  EXPECT_EQ(merging.at("as"), "merged");
  EXPECT_DOUBLE_EQ(merging.at("startup_us"), 6);
  EXPECT_DOUBLE_EQ(merging.at("ns_per_byte"), 250);
  EXPECT_DOUBLE_EQ(merging.at("predicted_us"), 59);
  EXPECT_DOUBLE_EQ(merging.at("iteration_us"), 59);
  EXPECT_THAT(simulate("--preset mg-wfbp --merge greedy" + with).out, HasSubstr("c..d, b, a"));
  folder_.write("network.toml", "hosts = 4\nbandwidth_gbps = 1\n");
  const json network = json::parse(
      simulate("--preset mg-wfbp --json --profile four.json --cluster network.toml").out);
  EXPECT_EQ(network.at("merging").at("groups"), (json{"d", "c", "b", "a"}));
  EXPECT_EQ(network.at("merging").at("as"), "wfbp");
}

// A worker computes or waits, and every wait has a cause.
TEST_F(CliSimulateTest, TheBreakdownOfAnIterationAddsUp) {
  folder_.write("small.json", R"({"name":"small","batch":8,"layers":[
      {"name":"a","params":1000,"forward_us":100,"backward_us":200},
      {"name":"b","params":30,"forward_us":100,"backward_us":200}]})");
  folder_.write("pairs.toml", "hosts = 2\nworkers_per_host = 2\nbandwidth_gbps = 0.1\n");
  for (const char* more : {"", " --local-aggregation"}) {
    const json summary = json::parse(
        simulate(std::string("--profile small.json --cluster pairs.toml --json") + more).out);
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

TEST_F(CliSimulateTest, LeavesNoFolderUnasked) {
  EXPECT_THAT(simulate(kInput).out, testing::Not(HasSubstr("report in")));
  simulate(kInput + std::string("--trace t.json"));
  EXPECT_TRUE(has("t.json"));
  EXPECT_FALSE(has("runs"));
  EXPECT_THAT(simulate(kInput + std::string("--run mine")).out,
              HasSubstr("report in mine/report.html\n"));
  EXPECT_TRUE(has("mine/summary.json"));
  EXPECT_FALSE(has("runs"));
  simulate(kInput + std::string("--trace"));
  ASSERT_TRUE(has("runs"));
  const auto made = *std::filesystem::directory_iterator(folder_.path() / "runs");
  EXPECT_TRUE(std::filesystem::exists(made.path() / "trace.json"));
}

TEST_F(CliSimulateTest, ARecordIsEnoughToRunAgain) {
  folder_.write("fragments.toml", "hosts = 3\nbandwidth_gbps = 1\nfragment_bytes = 65536\n");
  const std::string first =
      simulate(
          "--preset p3 --seed 3 --time-scale 2 --iterations 7 --profile net.json --cluster "
          "fragments.toml --run run --trace --json")
          .out;
  for (const char* name : {"net.json", "fragments.toml"}) {
    std::filesystem::remove(folder_.path() / name);
  }
  std::filesystem::create_directory(folder_.path() / "kept");
  std::filesystem::rename(folder_.path() / "run", folder_.path() / "kept/run");
  EXPECT_EQ(simulate("--config kept/run/config.toml").out, first);
  EXPECT_FALSE(has("run"));
  simulate("--config kept/run/config.toml --run again");
  json before = json::parse(folder_.read("kept/run/summary.json"));
  json after = json::parse(folder_.read("again/summary.json"));
  EXPECT_NE(before.at("run").at("command_line"), after.at("run").at("command_line"));
  before.erase("run");
  after.erase("run");
  EXPECT_EQ(before, after);
  EXPECT_EQ(before, json::parse(first));
  EXPECT_EQ(folder_.read("kept/run/metrics.jsonl"), folder_.read("again/metrics.jsonl"));
}

TEST_F(CliSimulateTest, ARecordTellsWhenWhereAndHowItWasMade) {
  simulate(kInput + std::string("--run 'the run'"));
  const json run = json::parse(folder_.read("the run/summary.json")).at("run");
  EXPECT_THAT(run.at("version").get<std::string>(), testing::MatchesRegex("[0-9.]+"));
  EXPECT_EQ(run.at("command_line"),
            "sluice simulate --profile net.json --cluster two.toml --run 'the run'");
  EXPECT_THAT(run.at("started").get<std::string>(), testing::MatchesRegex("20..-..-..T..:..:..Z"));
  ASSERT_EQ(run.at("hosts").size(), 1U);
  EXPECT_NE(run.at("hosts").at(0), "");
}

// ---- sweeps -------------------------------------------------------------------------------------

TEST_F(CliSimulateTest, ASweepHasWhatItsRunsHaveAlone) {
  const auto cells =
      json::parse(simulate(std::string(kInput) +
                           "--preset p3,wfbp --sweep hosts=2,3 --sweep bandwidth_gbps=0.5,2 "
                           "--iterations 3 --json --run swept")
                      .out)
          .at("cells");
  ASSERT_EQ(cells.size(), 8U);
  EXPECT_EQ(cells[5].at("values"),
            json({{"preset", "wfbp"}, {"hosts", "2"}, {"bandwidth_gbps", "2"}}));
  folder_.write("alone.toml", "hosts = 2\nbandwidth_gbps = 2\n");
  const auto alone = json::parse(
      simulate("--profile net.json --cluster alone.toml --preset wfbp --iterations 3 --json").out);
  EXPECT_EQ(cells[5].at("summary").at("iteration_us"), alone.at("iteration_us"));
  EXPECT_EQ(cells[5].at("summary").at("breakdown"), alone.at("breakdown"));
  EXPECT_TRUE(has("swept/sweep.csv"));
  EXPECT_TRUE(has("swept/sweep.svg"));
}

TEST_F(CliSimulateTest, ASweepIsTheSameOnAnyNumberOfThreads) {
  const auto on = [&](const std::string& threads) {
    return simulate(std::string(kInput) +
                    "--sweep hosts=2,3,5 --sweep slice=1000,30000 --preset p3 "
                    "--iterations 2 --json --threads " +
                    threads + " --run on" + threads)
        .out;
  };
  EXPECT_EQ(on("1"), on("3"));
}

TEST_F(CliSimulateTest, ASweepThatIsWrongIsRefusedBeforeItRuns) {
  for (const auto& [flags, complaint] : {
           std::pair{"--sweep hosts=2,0", "--sweep: hosts=0: two.toml: hosts: is 0"},
           {"--sweep speed=2", "--sweep: speed=2: two.toml: speed: is not a known key"},
           {"--sweep preset=p3,p4", "--sweep: preset=p4: --preset: is \"p4\""},
           {"--sweep hosts", "--sweep: hosts: expected KEY=VALUE"},
           {"--sweep hosts=2 --lr 1", "--lr: nothing is trained"},
           {"--sweep hosts=2 --trace t.json", "--trace: a sweep simulates many runs"},
       }) {
    const Outcome outcome = sluice("simulate" + std::string(kInput) + flags, folder_);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_THAT(outcome.err, HasSubstr(complaint));
  }
  EXPECT_FALSE(has("runs"));
}

// A host at half speed: with equal shares all wait for it, and an iteration takes twice as long as
// its compute. With shares 2/3 and 1/3 both take 4/3 of it.
TEST(CliSimulateSharesTest, SharesBySpeedEndTogether) {
  const TemporaryFolder folder;
  folder.write("net.json", R"({"name":"net","batch":8,"layers":[
      {"name":"a","params":10,"forward_us":40000,"backward_us":80000}]})");
  folder.write(
      "slow.toml",
      "hosts = 2\nbandwidth_gbps = 100\nlatency_us = 0\n[[host]]\nindex = 1\nspeed = 0.5\n");
  const auto iteration_us = [&](const std::string& more) {
    const Outcome outcome =
        sluice("simulate --profile net.json --cluster slow.toml --json " + more, folder);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("iteration_us").get<double>();
  };
  for (const std::string preset : {"--preset p3", "--preset wfbp"}) {
    EXPECT_NEAR(iteration_us(preset), 240'000, 10);
    EXPECT_NEAR(iteration_us(preset + " --batch-shares auto"), 160'000, 10);
    EXPECT_NEAR(iteration_us(preset + " --batch-shares 2,1"), 160'000, 10);
    EXPECT_NEAR(iteration_us(preset + " --batch-shares 1,3"), 360'000, 10);
  }
  const std::string base = "simulate --profile net.json --cluster slow.toml --batch-shares ";
  expect_refused(sluice(base + "1,2,3", folder), "batch-shares: has 3 shares for 2 workers");
  expect_refused(sluice(base + "1,0", folder), "batch-shares: \"0\" in \"1,0\"");
  expect_refused(sluice(base + "auto --preset gosgd", folder),
                 "batch-shares: with algorithm gosgd workers take steps of their own");
}

}  // namespace
}  // namespace sluice
