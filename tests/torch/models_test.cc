// The built-in models, in training and against published figures.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "data/synthetic.h"
#include "data/text.h"
#include "formats/profile.h"
#include "nodes/presets.h"
#include "support/skip.h"
#include "support/threaded.h"
#include "torch/layout.h"
#include "torch/models/families.h"
#include "torch/models/table.h"
#include "torch/profiling/flops.h"
#include "torch/torch_learner.h"

namespace sluice {
namespace {

struct Published {
  std::int64_t parameters;
  std::size_t layers;
  double multiply_adds;  // millions, per sample
};

// ImageNet nets: torchvision's model cards; layers: convolutions, fully connected layers and
// normalisations.
// ResNet-110: 1.7 M in its paper, whose shortcuts have no parameters. CIFAR100
// nets, LeNet and MLP: by hand. Sockeye: profiles/p4000-roofline/sockeye.json; 50 words of source
// and target each. GoogLeNet of Caffe: as its definition has them; Inception v3 of
// MXNet: torchvision's without the 5 layers of its head; Sockeye for IWSLT15 and the
// GPT: by hand.
const std::map<std::string, Published> kPublished{
    {"lenet", {431'080, 4, 2.293}},
    {"mlp", {648'010, 3, 0.647}},
    {"cifar100-cnn", {151'428, 5, 12.360}},
    {"cifar100-convex", {64 * 100 + 100, 1, 12.360}},
    {"resnet18", {11'689'512, 41, 1'814}},
    {"resnet50", {25'557'032, 107, 4'089}},
    {"resnet110", {1'727'962, 219, 252.9}},
    {"alexnet", {61'100'840, 8, 714}},
    {"vgg16", {138'357'544, 16, 15'470}},
    {"vgg19", {143'667'240, 19, 19'632}},
    {"googlenet", {13'004'888, 123, 1'498}},
    {"inceptionv3", {27'161'264, 194, 5'713}},
    {"sockeye", {52'801'472, 10, 1'206.784}},
    {"googlenet-caffe", {13'378'280, 64, 1'583}},
    {"inceptionv3-mxnet", {23'834'568, 189, 5'713}},
    {"sockeye-iwslt15", {26'682'397, 9, 697.98}},
    {"char-gpt", {134'912, 16, 3.932}},
};

TEST(ModelsTest, HaveThePublishedSizes) {
  const std::vector<ModelInfo> models = torch_models();
  EXPECT_EQ(models.size(), kPublished.size());
  for (const ModelInfo& model : models) {
    const Published& published = kPublished.at(model.name);
    EXPECT_EQ(model.parameters, published.parameters) << model.name;
    EXPECT_EQ(model.layers, published.layers) << model.name;
    const double multiply_adds = static_cast<double>(model.forward_flops) / 2e6;
    EXPECT_NEAR(multiply_adds, published.multiply_adds, published.multiply_adds * 1e-3)
        << model.name;
  }
}

// A sample without padding, for which no work is skipped.
at::Tensor full_sample(const SampleForm& form) {
  std::vector<std::int64_t> shape = form.shape;
  shape.insert(shape.begin(), 1);
  return form.words > 0 ? at::full(shape, kFirstWord, at::kLong) : at::zeros(shape, at::kFloat);
}

TEST(ModelsTest, HaveTheSizesInTheirTable) {
  const at::NoGradGuard no_grad;
  for (const ModelEntry& entry : model_table()) {
    const std::unique_ptr<Network> network = entry.make(entry.form);
    std::vector<ParameterSize> sizes;
    for (const NamedTensor& parameter : network->parameters()) {
      sizes.push_back({parameter.name, parameter.tensor.numel()});
    }
    const std::vector<Layer> layers = make_layout(sizes, {}).layers;
    network->set_training(false);
    const at::Tensor sample = full_sample(entry.form);
    EXPECT_EQ(entry.size.parameters, total_params(layers)) << entry.name;
    EXPECT_EQ(entry.size.layers, layers.size()) << entry.name;
    EXPECT_EQ(entry.size.forward_flops, count_flops([&] { network->forward(sample); }))
        << entry.name;
  }
}

// A character that comes later does not count.
TEST(ModelsTest, TheGptPredictsFromWhatCameBefore) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<Network> gpt = make_char_gpt({{1, 8}, 256, 256});
  at::Tensor window = at::arange(8, at::kLong).reshape({1, 1, 8});
  const at::Tensor before = gpt->forward(window);
  window[0][0][5] = 99;
  const at::Tensor after = gpt->forward(window);
  for (std::int64_t place = 0; place < 8; ++place) {
    EXPECT_EQ(at::equal(before[place], after[place]), place < 5) << place;
  }
}

class ModelTrainsThreads : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kWorkers = 2;

  // The smallest input that the model supports; that of the GPT is part of its parameters.
  static TorchTask small_task(const std::string& model) {
    std::int64_t size = model == "char-gpt" ? 0 : 5;
    while (!model_form(model, size)) {
      ++size;
    }
    const SampleForm form = *model_form(model, size);
    TorchTask task;
    task.model = model;
    task.batch = 2;
    task.workers = kWorkers;
    if (form.words > 0 && form.shape[0] == 1) {
      const CharacterSplit split = make_synthetic_characters(
          {.length = form.shape.back(), .train_samples = 16, .test_samples = 4});
      task.train = std::make_shared<const CharacterSet>(split.train);
      task.test = std::make_shared<const CharacterSet>(split.test);
    } else if (form.words > 0) {
      const TextSplit split = make_synthetic_text({.longest = form.shape.back(),
                                                   .source_words = form.words,
                                                   .target_words = form.classes,
                                                   .train_samples = 16,
                                                   .test_samples = 4});
      task.train = std::make_shared<const TextSet>(split.train);
      task.test = std::make_shared<const TextSet>(split.test);
    } else {
      const DataSplit split = make_synthetic({.sample_shape = form.shape,
                                              .classes = form.classes,
                                              .train_samples = 16,
                                              .test_samples = 4});
      task.train = std::make_shared<const DataSet>(split.train);
      task.test = std::make_shared<const DataSet>(split.test);
    }
    return task;
  }

  // With LibTorch and memcmp: loops of tests are not optimised, and models have many parameters.
  static at::Tensor parameters_of(Learner& learner) {
    const std::span<float> values = learner.parameters();
    return at::from_blob(values.data(), {std::ssize(values)}, at::kFloat);
  }
  static bool same_bits(const at::Tensor& a, const at::Tensor& b) {
    return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
  }

  // The parameters after three iterations.
  static at::Tensor trained(const LearnerFactory& make, const char* preset) {
    std::vector<std::unique_ptr<Learner>> learners;
    for (std::size_t w = 0; w < kWorkers; ++w) {
      learners.push_back(make(w));
    }
    const UpdateRule rule{.rate = {.base = 0.001F}, .momentum = 0.9F, .weight_decay = 0};
    const at::Tensor before = parameters_of(*learners.front()).clone();
    testing::run_threaded(learners, Topology(kWorkers, 1, 0), find_preset(preset)->strategy, rule,
                          3);
    const at::Tensor after = parameters_of(*learners.front());
    EXPECT_TRUE(std::isfinite(after.sum().item().toDouble()));
    EXPECT_TRUE(same_bits(parameters_of(*learners.back()), after));
    EXPECT_FALSE(same_bits(before, after));
    learners.front()->estimate_statistics();  // three iterations are too few for deep networks
    const Evaluation evaluation = learners.front()->evaluate().value();
    EXPECT_TRUE(std::isfinite(evaluation.loss));
    return after.clone();
  }
};

TEST_P(ModelTrainsThreads, AlikeWithP3AndKvstore) {
  if (GetParam() == "vgg19") {
    SKIP_AS_INAPPLICABLE("it is vgg16 with three convolutions more");
  }
  const TorchTask task = small_task(GetParam());
  ASSERT_TRUE(configure_engine(task, {}, Kernels::kNative));  // one thread per operator
  const auto make = make_torch_learners(task);
  ASSERT_TRUE(make) << make.error().message();
  EXPECT_TRUE(same_bits(trained(*make, "p3"), trained(*make, "kvstore")));
}

// The profiles in p4000-roofline were made from torchvision's models, with layers in the order of
// their use; all others were made by sluice profile.
TEST_P(ModelTrainsThreads, HasTheLayersOfItsProfiles) {
  std::vector<std::filesystem::path> found;
  const std::string file = GetParam() + ".json";
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SLUICE_SOURCE_DIR "/profiles")) {
    if (entry.path().filename() == file) {
      found.push_back(entry.path());
    }
  }
  if (found.empty()) {
    SKIP_AS_INAPPLICABLE("there is no profile " + file);
  }
  const auto make = make_torch_learners(small_task(GetParam()));
  ASSERT_TRUE(make) << make.error().message();
  const auto learner = (*make)(0);
  const std::vector<Layer>& layers = learner->layers();
  for (const std::filesystem::path& path : found) {
    const auto profile = read_profile(path);
    ASSERT_TRUE(profile) << profile.error().message();
    ASSERT_EQ(layers.size(), profile->layers.size()) << path;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(layers[i].name, profile->layers[i].name) << path;
      EXPECT_EQ(layers[i].range.size(), profile->layers[i].params) << path << layers[i].name;
    }
  }
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, published] : kPublished) {
    names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ModelTrainsThreads, ::testing::ValuesIn(model_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice
