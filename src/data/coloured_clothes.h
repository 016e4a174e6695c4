#pragma once

#include "data/dataset.h"

namespace sluice {

// Fashion-MNIST in colours, for nets that take CIFAR-100: images of 3 x 32 x 32 in 100 classes, ten
// kinds of clothes times ten colours. The colour of a sample depends on its index only. The images
// of `clothes` are 1 x 28 x 28.
DataSplit coloured(const DataSplit& clothes);

}  // namespace sluice
