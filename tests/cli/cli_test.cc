// Runs the program itself: exit codes, one line on standard error, results on standard output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

// The arguments go through a shell, in a folder of their own.
Outcome sluice(const std::string& arguments, const TemporaryFolder& folder) {
  const std::string command = "cd '" + folder.path().string() + "' && '" SLUICE_BINARY "' " +
                              arguments + " >out.txt 2>err.txt";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out.txt"),
          folder.read("err.txt")};
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
  for (const char* command : {"train", "simulate", "presets", "models", "doctor"}) {
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

TEST(CliTest, PresetsAreATableOrJson) {
  EXPECT_THAT(sluice("presets").out, HasSubstr("kvstore"));
  const json list = json::parse(sluice("presets --json").out);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(list.at(0).at("name"), "kvstore");
  EXPECT_EQ(list.at(0).at("exchange"), "ps-pull");
}

TEST(CliTest, ModelsAreJson) { EXPECT_TRUE(json::parse(sluice("models --json").out).is_array()); }

TEST(CliTest, TheDoctorTellsWhatIsMissing) {
  const json report = json::parse(sluice("doctor --json").out);
  EXPECT_TRUE(report.at("missing").contains("MPI"));
  EXPECT_TRUE(report.contains("compiler"));
  EXPECT_THAT(sluice("doctor").out, HasSubstr("what is missing, and how to get it"));
}

TEST(CliTest, AResultThatCannotBeWrittenIsAFailure) {
  const int status = std::system("'" SLUICE_BINARY "' presets >/dev/full 2>/dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace sluice
