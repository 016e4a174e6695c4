#pragma once

#include <memory>

#include "data/dataset.h"
#include "torch/network.h"

// The built-in models, one file per family. Modules, and so the layers of a run, are named as in
// torchvision.
namespace sluice {

std::unique_ptr<Network> make_lenet(const SampleForm& form);
std::unique_ptr<Network> make_mlp(const SampleForm& form);

std::unique_ptr<Network> make_cifar100_cnn(const SampleForm& form);
std::unique_ptr<Network> make_cifar100_convex(const SampleForm& form);

std::unique_ptr<Network> make_resnet18(const SampleForm& form);
std::unique_ptr<Network> make_resnet50(const SampleForm& form);
std::unique_ptr<Network> make_resnet110(const SampleForm& form);

std::unique_ptr<Network> make_alexnet(const SampleForm& form);
std::unique_ptr<Network> make_vgg16(const SampleForm& form);
std::unique_ptr<Network> make_vgg19(const SampleForm& form);

std::unique_ptr<Network> make_googlenet(const SampleForm& form);
std::unique_ptr<Network> make_googlenet_caffe(const SampleForm& form);
std::unique_ptr<Network> make_inceptionv3(const SampleForm& form);
std::unique_ptr<Network> make_inceptionv3_mxnet(const SampleForm& form);

std::unique_ptr<Network> make_sockeye(const SampleForm& form);
std::unique_ptr<Network> make_sockeye_iwslt15(const SampleForm& form);

std::unique_ptr<Network> make_char_gpt(const SampleForm& form);

}  // namespace sluice
