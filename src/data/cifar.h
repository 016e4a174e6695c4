#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/dataset.h"

namespace sluice {

enum class Cifar : std::uint8_t { k10, k100 };

// Reads the binary version of CIFAR-10 (data_batch_1.bin ... data_batch_5.bin, test_batch.bin) or
// CIFAR-100 (train.bin, test.bin; the fine labels) as images of shape 3 x 32 x 32 with standardised
// pixels. Takes the class names from batches.meta.txt or fine_label_names.txt in the same folder,
// if present. Errors name the file and the offset.
Result<DataSplit> read_cifar_folder(const std::string& folder, Cifar kind);

}  // namespace sluice
