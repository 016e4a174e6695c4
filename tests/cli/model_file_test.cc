// Users' own models: exported from Python, trained by the program, and read back by Python.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/command.h"
#include "support/mpirun.h"
#include "support/skip.h"

namespace sluice {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kPython = "/usr/bin/python3";
const std::string kExamples = SLUICE_SOURCE_DIR "/examples/";

// A shell command that trains with two workers on few samples.
std::string train(const std::string& more) {
  return "'" SLUICE_BINARY "' train --batch 4 --iterations 6 --kernels native --json " + more;
}

// Loads both files and compares the trained module to the one of the example with the weights of
// the safetensors file. Prints nothing if they agree and differ from the start.
constexpr const char* kCompare = R"py(
import json, struct, sys
import torch
sys.path.insert(0, sys.argv[1])
import export_model

kinds = {"F32": torch.float32, "I64": torch.int64}
with open("trained/model.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
weights = {}
for name, entry in header.items():
    if name != "__metadata__":
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=kinds[entry["dtype"]])
        weights[name] = flat.reshape(entry["shape"])
module = export_model.MODELS[sys.argv[2]]()
module.load_state_dict(weights)
trained = torch.jit.load("trained/model.pt")
before = torch.jit.load("net.pt")
for each in (module, trained, before):
    each.eval()
samples = torch.randn(5, 1, 28, 28)
assert set(trained.state_dict()) == set(weights)
assert torch.equal(module(samples), trained(samples)), "the files differ"
assert not torch.allclose(trained(samples), before(samples)), "nothing was learnt"
if "norm.num_batches_tracked" in weights:
    assert weights["norm.num_batches_tracked"].item() == 6
)py";

class ModelFileThreadsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Outcome torch = run_command(kPython + " -c 'import torch'", folder_);
    if (torch.code != 0) {
      SKIP_FOR_LACK(kPython + " has no torch; scripts/packages test installs it");
    }
    const Outcome made = run_command(
        kPython + " " + kExamples + "export_model.py " + GetParam() + " net.pt", folder_);
    ASSERT_EQ(made.code, 0) << made.err;
  }

  // The summary of a training run that must succeed; null without LibTorch.
  static json summary_of(const Outcome& outcome) {
    if (outcome.code == 2 && outcome.err.find("no LibTorch") != std::string::npos) {
      return nullptr;
    }
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json::object();
  }

  void expect_equal_in_python() const {
    folder_.write("compare.py", kCompare);
    const Outcome compared =
        run_command(kPython + " compare.py " + kExamples + " " + GetParam(), folder_);
    EXPECT_EQ(compared.code, 0) << compared.err;
  }

  TemporaryFolder folder_;
};

TEST_P(ModelFileThreadsTest, TrainsAndReloadsInPython) {
  const json summary = summary_of(run_command(
      train("--model net.pt --data synthetic --input-shape 1x28x28 --samples 64 --workers 2 "
            "--save trained --run run"),
      folder_));
  if (summary.is_null()) {
    SKIP_AS_INAPPLICABLE("built without LibTorch");
  }
  EXPECT_EQ(summary.at("model"), "net");
  EXPECT_EQ(summary.at("saved"), "trained");
  EXPECT_TRUE(summary.contains("test_accuracy"));
  expect_equal_in_python();
}

TEST_P(ModelFileThreadsTest, OfAnotherUserIsWarnedOf) {
  const std::string command =
      train("--model net.pt --data synthetic --input-shape 1x28x28 --samples 64 --workers 1");
  const std::string warning = "belongs to another user";
  const Outcome own = run_command(command, folder_);
  if (own.code != 0 || geteuid() != 0) {
    SKIP_AS_INAPPLICABLE("built without LibTorch, or not root");
  }
  EXPECT_THAT(own.err, Not(HasSubstr(warning)));
  ASSERT_EQ(run_command("chown 4711 net.pt", folder_).code, 0);
  EXPECT_THAT(run_command(command, folder_).err, HasSubstr(warning));
}

INSTANTIATE_TEST_SUITE_P(Cli, ModelFileThreadsTest, testing::Values("cnn", "lstm"),
                         [](const auto& info) { return info.param; });

class ModelFileMpiTest : public ModelFileThreadsTest {};

TEST_P(ModelFileMpiTest, TheFirstProcessSaves) {
  if (const std::string why = why_no_mpi(); !why.empty()) {
    SKIP_FOR_LACK(why);
  }
  const json summary = summary_of(mpirun(
      2, train("--model net.pt --data synthetic --input-shape 1x28x28 --samples 64 --save trained"),
      folder_));
  if (summary.is_null()) {
    SKIP_AS_INAPPLICABLE("built without LibTorch");
  }
  EXPECT_EQ(summary.at("workers"), 2);
  expect_equal_in_python();
}

INSTANTIATE_TEST_SUITE_P(Cli, ModelFileMpiTest, testing::Values("cnn"),
                         [](const auto& info) { return info.param; });

// Bad input: exit code 2 and a one-line error.
void expect_refused(const std::string& more, const std::string& complaint) {
  const TemporaryFolder folder;
  folder.write("text.pt", "hello");
  const Outcome outcome = run_command(train("--workers 2 " + more), folder);
  if (outcome.err.find("no LibTorch") != std::string::npos) {
    return;
  }
  EXPECT_EQ(outcome.code, 2) << more;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr(complaint));
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

TEST(CliModelFileTest, WhatCannotBeIsOneLineAndCodeTwo) {
  const std::string made_up = "--data synthetic --samples 32 --input-shape ";
  expect_refused("--model none.pt " + made_up + "6", "none.pt: cannot be read: No such file");
  expect_refused("--model text.pt " + made_up + "6", "text.pt: is not a TorchScript file: ");
  expect_refused("--model ./text " + made_up + "6", "./text: cannot be read: No such file");
  expect_refused("--model nonet", "choose one of lenet");
  expect_refused("--model text.pt --data synthetic", "input-shape: is missing; ");
  for (const char* shape : {"3x", "x3", "3x0", "3,4", "-1", "1000000x1000000"}) {
    expect_refused("--model text.pt " + made_up + shape, "expected whole numbers such as 3x32x32");
  }
  expect_refused("--model text.pt --input-words 50 " + made_up + "20", "expected 2xLONGEST");
  expect_refused("--model text.pt --input-words 3 " + made_up + "2x20",
                 "for sentences, found 3 and 10");
  expect_refused("--model text.pt --input-size 3 " + made_up + "3",
                 "--input-size: is for built-in");
  expect_refused("--model lenet --data synthetic --classes 3", "--classes: is for a model from a");
  expect_refused("--model lenet --input-shape 3",
                 "--input-shape: is for --data images, text, characters, synthetic only");
  expect_refused("--model mlp --data synthetic --samples 32 --save text.pt/x",
                 "save: text.pt/x: the folder cannot be created: ");
}

}  // namespace
}  // namespace sluice
