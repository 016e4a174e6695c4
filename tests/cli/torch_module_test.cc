// LibTorch is in a module that the program opens when a command needs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/command.h"
#include "support/skip.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The libraries that the dynamic linker loads for this command line, one per line.
std::string libraries_of(const std::string& arguments) {
  const TemporaryFolder folder;
  folder.write("net.json", R"({"name":"net","batch":8,"layers":[
      {"name":"a","params":1000,"forward_us":10,"backward_us":20}]})");
  folder.write("two.toml", "hosts = 2\nbandwidth_gbps = 1\n");
  const Outcome outcome =
      run_command("LD_DEBUG=files LD_DEBUG_OUTPUT=$PWD/linker '" SLUICE_BINARY "' " + arguments +
                      " && grep -ho 'file=[^ ]*' linker.*" + " | sed 's,.*[=/],,' >&2",
                  folder);
  EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
  return outcome.err;
}

TEST(CliTorchModuleTest, CommandsThatNeedNoLibTorchDoNotLoadIt) {
  for (const char* arguments : {"--version", "train --help", "presets", "lab --help",
                                "probe --help", "simulate --profile net.json --cluster two.toml",
                                "train --model replay:net.json --iterations 1 --workers 2"}) {
    const std::string libraries = libraries_of(arguments);
    EXPECT_THAT(libraries, HasSubstr("libfmt")) << "linked libraries are seen";
    EXPECT_THAT(libraries, Not(HasSubstr("torch"))) << arguments;
  }
}

TEST(CliTorchModuleTest, IsOpenedWhenItIsNeeded) {
  if (!SLUICE_HAS_MODELS) {
    SKIP_AS_INAPPLICABLE("built without LibTorch");
  }
  EXPECT_THAT(libraries_of("models"), HasSubstr("sluice_torch.so"));
}

// The program alone in a folder, with this file in place of its module unless it is empty.
Outcome misplaced(const std::string& arguments, const std::string& module = "") {
  const TemporaryFolder folder;
  std::filesystem::copy(SLUICE_BINARY, folder.path() / "sluice");
  if (!module.empty()) {
    std::filesystem::create_directory(folder.path() / "modules");
    std::filesystem::copy(module, folder.path() / "modules/sluice_torch.so");
  }
  return run_command("./sluice " + arguments, folder);
}

TEST(CliTorchModuleTest, WithoutItThereAreNoModels) {
  const Outcome models = misplaced("models");
  EXPECT_EQ(models.code, 1);
  EXPECT_THAT(models.err, StartsWith("sluice: no models are available: "));
  EXPECT_THAT(models.err, HasSubstr("LibTorch"));
  const Outcome train = misplaced("train --data synthetic --iterations 1");
  EXPECT_EQ(train.code, 2);
  EXPECT_THAT(train.err, StartsWith("sluice: model lenet: "));
  const Outcome doctor = misplaced("doctor --json");
  EXPECT_EQ(doctor.code, 0) << doctor.err;
  const auto report = nlohmann::json::parse(doctor.out);
  EXPECT_EQ(report.at("LibTorch"), "missing");
  EXPECT_TRUE(report.at("missing").contains("LibTorch"));
}

TEST(CliTorchModuleTest, AnotherFileInItsPlaceIsRefused) {
  if (!SLUICE_HAS_MODELS) {
    SKIP_AS_INAPPLICABLE("built without LibTorch");
  }
  const TemporaryFolder folder;
  const Outcome text = misplaced("models", folder.write("text", "no library"));
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.err, HasSubstr("modules/sluice_torch.so: cannot be loaded: "));
  EXPECT_THAT(
      misplaced("models", SLUICE_OTHER_MODULE).err,
      HasSubstr("modules/sluice_torch.so: is from another build and not from this build ("));
}

}  // namespace
}  // namespace sluice
