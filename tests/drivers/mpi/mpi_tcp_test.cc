// Runs MPI jobs on this machine whose messages go over TCP connections of their own.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "drivers/mpi/mpi_jobs.h"
#include "nodes/presets.h"
#include "support/threaded.h"
#include "support/toy_job.h"
#include "support/toy_learner.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class MpiTcpPresetTest : public MpiTest, public ::testing::WithParamInterface<Preset> {};
INSTANTIATE_TEST_SUITE_P(, MpiTcpPresetTest, ::testing::ValuesIn(presets()), preset_name);

// With or without threads of the transport, in turn.
TEST_P(MpiTcpPresetTest, Trains) {
  const Preset& preset = GetParam();
  const auto turn = std::ranges::find(presets(), preset.name, &Preset::name) - presets().begin();
  const std::string carrier = turn % 2 == 0 ? "tcp" : "tcp2";
  SCOPED_TRACE(carrier);
  const Outcome outcome = toys(fmt::format("{}/{} {}", carrier, preset.name, kIterations));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (is_deterministic(preset.strategy)) {
    const auto learners = testing::toy_learners(testing::kToyLayers, kProcesses);
    EXPECT_EQ(lines_of(outcome.out),
              hashes_on_threads(learners, testing::toy_strategy(std::string(preset.name))));
  } else {
    EXPECT_THAT(lines_of(outcome.out), SizeIs(kProcesses));
  }
}

TEST_F(MpiTest, OverTcpNoSwapIsLostAtTheEnd) {
  for (const std::string carrier : {"tcp", "tcp3", "tcp6"}) {
    const Outcome outcome = toys(carrier + "/ad-psgd 8 0 still");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

TEST_F(MpiTest, OverTcpAFailureEndsAllAndNamesTheRank) {
  for (const std::string carrier : {"tcp", "tcp2"}) {
    SCOPED_TRACE(carrier);
    const Outcome outcome = toys(carrier + "/p3 1000000 2 throw");
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("rank 2: the learner has had enough"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("memory was freed")));
  }
}

TEST_F(MpiTest, OverTcpADeathEndsAll) {
  const Outcome outcome = toys("tcp2/p3 1000000 2 kill");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "the job was still there after two minutes";
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr(uses_open_mpi() ? "rank 2" : "signal 9"));
}

TEST_F(MpiTest, OverTcpASilentProcessEndsAllAndIsNamed) {
  const Outcome outcome = toys("tcp/p3 1000000 2 stop");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("rank 2"));
  EXPECT_THAT(outcome.err, HasSubstr("has not been heard of"));
}

TEST_F(MpiTest, OverTcpABadMessageEndsAllAndNamesItsSender) {
  for (const auto& [strategy, fault, why] :
       {std::tuple{"tcp/p3", "babble", "it is about chunk 1000000"},
        {"tcp2/bsp+dgc", "garble", "position 4294967295"},
        {"tcp2/wfbp:slice:ring", "repeat", "has come before"}}) {
    SCOPED_TRACE(fmt::format("{} {}", strategy, fault));
    const Outcome outcome = toys(fmt::format("{} 1000000 2 {}", strategy, fault));
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("a message of rank 2 is not right"));
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
}

TEST_F(MpiTest, TheSummaryTellsWhatCarriedMessages) {
  folder_.write("net.json", R"({"name": "net", "batch": 1, "layers": [
      {"name": "a", "params": 3000, "forward_us": 0, "backward_us": 0},
      {"name": "b", "params": 20000, "forward_us": 0, "backward_us": 0}]})");
  const auto network = [&](const std::string& settings) {
    const Outcome outcome =
        sluice("train --model replay:net.json --iterations 3 --json " + settings);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at("network");
  };
  EXPECT_EQ(network("").at("transport"), "mpi") << "processes of one machine share memory";
  const auto tcp = network("--transport tcp --transport-threads 3");
  EXPECT_EQ(tcp.at("transport"), "tcp");
  EXPECT_EQ(tcp.at("transport_threads"), 3);
}

TEST_F(MpiTest, TcpMakesNoSums) {
  const Outcome outcome =
      sluice("train --data synthetic --preset wfbp --collective native --transport tcp");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("choose another --collective"));
}

}  // namespace
}  // namespace sluice
