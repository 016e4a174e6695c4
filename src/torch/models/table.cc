#include "torch/models/table.h"

#include "torch/models/families.h"

namespace sluice {

std::vector<ModelEntry> model_table() {
  const SampleForm digit{{1, 28, 28}, 10};
  const SampleForm cifar10{{3, 32, 32}, 10};
  const SampleForm cifar100{{3, 32, 32}, 100};
  const SampleForm imagenet{{3, 224, 224}, 1000};
  const SampleForm sentence{{2, 50}, 24'000, 32'000};
  return {
      {"lenet",
       "LeNet with 20 and 50 5x5 filters and 500 hidden units",
       digit,
       std::nullopt,
       {431'080, 4, 4'586'000},
       make_lenet},
      {"mlp",
       "MNIST-MLP: two hidden layers of 500 units",
       digit,
       std::nullopt,
       {648'010, 3, 1'294'000},
       make_mlp},
      {"cifar100-cnn",
       "three 5x5 convolutions and two fully connected layers",
       cifar100,
       std::nullopt,
       {151'428, 5, 24'719'872},
       make_cifar100_cnn},
      {"cifar100-convex",
       "the same, but only the last layer is trained",
       cifar100,
       std::nullopt,
       {6500, 1, 24'719'872},
       make_cifar100_convex},
      {"resnet18",
       "ResNet-18 for ImageNet",
       imagenet,
       32,
       {11'689'512, 41, 3'628'146'688},
       make_resnet18},
      {"resnet50",
       "ResNet-50 for ImageNet",
       imagenet,
       32,
       {25'557'032, 107, 8'178'368'512},
       make_resnet50},
      {"resnet110",
       "ResNet-110 for CIFAR-10",
       cifar10,
       4,
       {1'727'962, 219, 505'775'360},
       make_resnet110},
      {"alexnet",
       "AlexNet with one tower",
       imagenet,
       63,
       {61'100'840, 8, 1'428'376'960},
       make_alexnet},
      {"vgg16", "VGG-16", imagenet, 32, {138'357'544, 16, 30'940'528'640}, make_vgg16},
      {"vgg19", "VGG-19", imagenet, 32, {143'667'240, 19, 39'264'124'928}, make_vgg19},
      {"googlenet",
       "GoogLeNet with batch normalisation and two auxiliary heads",
       imagenet,
       32,
       {13'004'888, 123, 2'996'752'384},
       make_googlenet},
      {"inceptionv3",
       "Inception v3 with its auxiliary head",
       {{3, 299, 299}, 1000},
       75,
       {27'161'264, 194, 11'426'432'192},
       make_inceptionv3},
      {"sockeye",
       "translation by LSTMs with attention, as in Sockeye",
       sentence,
       2,
       {52'801'472, 10, 2'413'568'000},
       make_sockeye},
  };
}

}  // namespace sluice
