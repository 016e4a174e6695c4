#pragma once

#include <exception>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "torch/network.h"
#include "torch/torch_learner.h"

namespace sluice {

// Networks of the TorchScript module in this file. Each has its own parameters, which start with
// the values in the file. The file is read once. The module's forward() takes samples of this form
// and returns scores: a row per label, a column per class. If there are more dimensions, all but
// the last count rows. With another loss it returns outputs of the shape of the targets, or takes
// the targets too and returns its loss. An error if the file has no such module, or if the loss is
// not for these samples.
//
// Random operators of a module draw from LibTorch's own generator. Workers that are threads of one
// process share it, so such a run is not reproducible to the last bit.
Result<NetworkFactory> read_script(const std::string& path, const SampleForm& form,
                                   Loss loss = Loss::kCrossEntropy);

// The message of a LibTorch exception without its traces.
std::string gist_of(const std::exception& error);

}  // namespace sluice
