#include "torch/script_network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cmath>

#include "data/synthetic.h"
#include "support/temporary_folder.h"
#include "torch/recorded_hooks.h"
#include "torch/saved_network.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using torch::jit::Module;

const SampleForm kForm{{6}, 3};

at::Tensor parameter(const std::vector<std::int64_t>& shape) {
  return at::randn(shape).requires_grad_();
}

Module make_linear(const std::string& name, std::int64_t in, std::int64_t out) {
  Module linear(name);
  linear.register_parameter("weight", parameter({out, in}), false);
  linear.register_parameter("bias", parameter({out}), false);
  linear.define("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n");
  return linear;
}

// Registered in another order than used, with a tied parameter, a frozen one and a buffer.
Module make_module() {
  Module module("net");
  module.register_module("exit", make_linear("exit", 5, 3));
  const Module entry = make_linear("entry", 6, 5);
  module.register_module("entry", entry);
  module.register_parameter("tied", entry.attr("weight").toTensor(), false);
  module.register_parameter("frozen", at::full({5}, 0.25F), false);
  module.register_buffer("passes", at::zeros({}, at::kLong));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
def forward(self, x):
    if self.training:
        self.passes += 1
    x = torch.tanh(self.entry.forward(x) + self.frozen + torch.sum(self.tied))
    return self.exit.forward(x)
)");
  return module;
}

std::string save(const Module& module, const TemporaryFolder& folder, const std::string& name) {
  module.save(folder.path() / name);
  return folder.path() / name;
}

TorchTask task_of_script(const std::string& model) {
  const DataSplit split =
      make_synthetic({.sample_shape = {6}, .classes = 3, .train_samples = 64, .test_samples = 16});
  TorchTask task;
  task.model = model;
  task.train = std::make_shared<DataSet>(split.train);
  task.test = std::make_shared<DataSet>(split.test);
  task.batch = 8;
  task.workers = 2;
  return task;
}

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) {
    parts.push_back(tensor.detach().flatten());
  }
  return at::cat(parts);
}

std::vector<float> floats_of(const at::Tensor& tensor) {
  const float* begin = tensor.data_ptr<float>();
  return {begin, begin + tensor.numel()};
}

TEST(ScriptNetworkTest, TrainsAsTheModuleItselfWould) {
  const TemporaryFolder folder;
  const TorchTask task = task_of_script(save(make_module(), folder, "net.pt"));
  const auto make = make_torch_learners(task);
  ASSERT_TRUE(make) << make.error().message();
  const auto learner = (*make)(0);
  ASSERT_EQ(learner->layers().size(), 2U);
  EXPECT_EQ(learner->layers()[0].name, "entry");
  EXPECT_EQ(learner->layers()[1].name, "exit");

  Module module = torch::jit::load(task.model);
  const std::vector<at::Tensor> parameters{
      module.attr("entry").toModule().attr("weight").toTensor(),
      module.attr("entry").toModule().attr("bias").toTensor(),
      module.attr("exit").toModule().attr("weight").toTensor(),
      module.attr("exit").toModule().attr("bias").toTensor()};
  EXPECT_TRUE(std::ranges::equal(learner->parameters(), floats_of(flat(parameters))));

  RecordedHooks hooks;
  learner->step(0, hooks);
  EXPECT_THAT(hooks.calls, ElementsAre("read 0", "read 1", "forward done", "ready 1", "ready 0"));
  const auto second = (*make)(1);
  EXPECT_NE(second->step(0, hooks), learner->step(0, hooks)) << "every worker has its own batches";
}

TEST(ScriptNetworkTest, ComputesInBf16) {
  const TemporaryFolder folder;
  TorchTask task = task_of_script(save(make_module(), folder, "net.pt"));
  RecordedHooks exact_hooks;
  const auto exact = (*make_torch_learners(task))(0);
  exact->step(0, exact_hooks);
  task.precision = Precision::kBf16;
  RecordedHooks hooks;
  const auto rounded = (*make_torch_learners(task))(0);
  rounded->step(0, hooks);
  EXPECT_EQ(hooks.calls, exact_hooks.calls);
  const auto close = [](float a, float b) { return std::abs(a - b) <= 0.05F + 0.1F * std::abs(b); };
  EXPECT_TRUE(std::ranges::equal(rounded->gradients(), exact->gradients(), close));
  EXPECT_FALSE(std::ranges::equal(rounded->gradients(), exact->gradients()));
}

TEST(ScriptNetworkTest, GradientsAreThoseOfAutograd) {
  const TemporaryFolder folder;
  const std::string path = save(make_module(), folder, "net.pt");
  const auto make = read_script(path, kForm);
  ASSERT_TRUE(make) << make.error().message();
  const auto network = (*make)();
  const at::Tensor samples = at::randn({4, 6});
  const at::Tensor labels = at::full({4}, 2, at::kLong);
  network->loss(samples, labels).backward();

  Module module = torch::jit::load(path);
  at::nll_loss(module.forward({samples}).toTensor().log_softmax(1), labels).backward();
  const auto trained = network->parameters();
  ASSERT_EQ(trained.size(), 4U);
  for (const NamedTensor& parameter : trained) {
    for (const auto& other : module.named_parameters()) {
      if (other.name == parameter.name) {
        EXPECT_TRUE(parameter.tensor.grad().allclose(other.value.grad())) << parameter.name;
      }
    }
  }
}

TEST(ScriptNetworkTest, MoreDimensionsAreMoreRows) {
  Module module("net");
  module.register_parameter("w", parameter({4, 3}), false);
  module.define("def forward(self, x):\n    return torch.matmul(x, self.w)\n");
  const TemporaryFolder folder;
  const auto make = read_script(save(module, folder, "net.pt"), {{5, 4}, 3});
  ASSERT_TRUE(make);
  const at::Tensor samples = at::randn({2, 5, 4});
  const at::Tensor scores = (*make)()->forward(samples);
  EXPECT_EQ(scores.sizes().vec(), (std::vector<std::int64_t>{10, 3}));
  EXPECT_TRUE(scores[7].allclose(samples[1][2].matmul((*make)()->parameters()[0].tensor)));
}

// The file written is the file read, with other values.
TEST(ScriptNetworkTest, GoesBackAsItCame) {
  const TemporaryFolder folder;
  const auto make = read_script(save(make_module(), folder, "net.pt"), kForm);
  ASSERT_TRUE(make);
  const auto network = (*make)();
  const at::Tensor samples = at::randn({4, 6});
  network->forward(samples);
  network->forward(samples);
  {
    const at::NoGradGuard no_grad;
    // Views of one buffer, as in training.
    const at::Tensor buffer = at::randn({1000});
    std::int64_t offset = 0;
    for (const NamedTensor& parameter : network->parameters()) {
      at::Tensor tensor = parameter.tensor;
      tensor.set_data(buffer.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  }
  const auto saved = save_network(*network, task_of_script("net.pt"), folder.path());
  ASSERT_TRUE(saved) << saved.error().message();
  Module module = torch::jit::load(folder.path() / "model.pt");
  EXPECT_EQ(module.attr("passes").toTensor().item().toLong(), 2);
  EXPECT_TRUE(module.attr("tied").toTensor().equal(
      module.attr("entry").toModule().attr("weight").toTensor()));
  EXPECT_FALSE(module.attr("frozen").toTensor().requires_grad());
  EXPECT_TRUE(module.attr("tied").toTensor().requires_grad());
  EXPECT_LT(std::filesystem::file_size(folder.path() / "model.pt"),
            std::filesystem::file_size(folder.path() / "net.pt") + 1000);
  network->set_training(false);
  module.eval();
  EXPECT_TRUE(module.forward({samples}).toTensor().equal(network->forward(samples)));
  const std::string header = folder.read("model.safetensors");
  for (const char* name :
       {"exit.weight", "exit.bias", "entry.weight", "tied", "frozen", "passes"}) {
    EXPECT_THAT(header, HasSubstr(std::string("\"") + name + "\":{"));
  }
}

std::string refusal(const TemporaryFolder& folder, const std::string& name) {
  const auto make = make_torch_learners(task_of_script(folder.path() / name));
  EXPECT_FALSE(make) << name;
  return make ? "" : make.error().message().substr(folder.path().string().size() + 1);
}

TEST(ScriptNetworkTest, RefusesFilesThatAreNoModule) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder, "none.pt"), StartsWith("none.pt: cannot be read: No such file"));
  folder.write("text.pt", "hello");
  EXPECT_THAT(refusal(folder, "text.pt"), StartsWith("text.pt: is not a TorchScript file: "));
  folder.write("empty.pt", "");
  EXPECT_THAT(refusal(folder, "empty.pt"), StartsWith("empty.pt: is not a TorchScript file: "));
  save(make_module(), folder, "half.pt");
  folder.write("half.pt", folder.read("half.pt").substr(0, 3000));
  EXPECT_THAT(refusal(folder, "half.pt"), StartsWith("half.pt: is not a TorchScript file: "));
}

TEST(ScriptNetworkTest, RefusesModulesThatCannotBeTrained) {
  const TemporaryFolder folder;
  Module mute("net");
  mute.register_parameter("w", parameter({3}), false);
  save(mute, folder, "mute.pt");
  EXPECT_THAT(refusal(folder, "mute.pt"), StartsWith("mute.pt: the module has no forward()"));

  Module bare("net");
  bare.register_parameter("w", at::ones({3}), false);
  bare.define("def forward(self, x):\n    return x[:, :3] * self.w\n");
  save(bare, folder, "bare.pt");
  EXPECT_THAT(refusal(folder, "bare.pt"), HasSubstr("no parameters that require a gradient"));

  Module wide("net");
  wide.register_parameter("w", at::ones({3}, at::kDouble).requires_grad_(), false);
  wide.define("def forward(self, x):\n    return x[:, :3] * self.w\n");
  save(wide, folder, "wide.pt");
  EXPECT_THAT(refusal(folder, "wide.pt"), HasSubstr("parameter w is of type Double"));
}

TEST(ScriptNetworkTest, RefusesModulesThatDoNotFitTheData) {
  const TemporaryFolder folder;
  const auto define = [&](const std::string& name, const std::string& body) {
    Module module("net");
    module.register_parameter("w", parameter({4, 3}), false);
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define("def forward(self, x):\n" + body);
    save(module, folder, name);
  };
  const auto reason = [&](const std::string& name) {
    const auto make = make_torch_learners(task_of_script(folder.path() / name));
    EXPECT_FALSE(make) << name;
    const std::string message = make ? "" : make.error().message();
    EXPECT_THAT(message, HasSubstr(name + ": does not take 1 sample of shape 6: "));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  define("shape.pt", "    return torch.matmul(x, self.w)\n");
  EXPECT_THAT(reason("shape.pt"), HasSubstr("cannot be multiplied (1x6 and 4x3)"));
  define("tuple.pt", "    return torch.matmul(x[:, :4], self.w), x\n");
  EXPECT_THAT(reason("tuple.pt"), HasSubstr("forward() returns a Tuple; expected a tensor"));
  define("few.pt", "    return torch.matmul(x[:, :4], self.w)[:, :2]\n");
  EXPECT_THAT(reason("few.pt"),
              HasSubstr("(1, 2); expected a row for every label, and a column for "
                        "each of 3 classes"));
  define("sum.pt", "    return torch.matmul(x[:, :4], self.w).sum()\n");
  EXPECT_THAT(reason("sum.pt"), HasSubstr("are of shape (); expected a row"));
  // Training uses another batch, which shows this fault.
  define("half.pt",
         "    y = torch.matmul(x[:, :4], self.w)\n"
         "    return torch.cat([y, y]) if self.training else y\n");
  const auto make = make_torch_learners(task_of_script(folder.path() / "half.pt"));
  ASSERT_FALSE(make);
  EXPECT_THAT(make.error().message(), HasSubstr("does not take 8 samples of shape 6: "));
}

}  // namespace
}  // namespace sluice
