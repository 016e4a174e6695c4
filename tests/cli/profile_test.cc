// What profile writes, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(CliProfileTest, AProfileThatCannotBeIsOneLineAndCodeTwo) {
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

TEST(CliProfileTest, AProfileIsForSimulate) {
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

}  // namespace
}  // namespace sluice
