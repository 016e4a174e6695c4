#pragma once

#include <exception>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "torch/network.h"

namespace sluice {

// Networks of the TorchScript module in this file, each with parameters of its own that begin as
// they are in the file. The file is read once. Its forward() takes samples of this form and returns
// scores: a row for every answer, a column for every class; where there are more dimensions, all
// but the last count rows. An error if there is no such module in it.
//
// What is random in a module draws from LibTorch's own generator. Workers that are threads of one
// process share it, so that such a run cannot be repeated to the last bit.
Result<NetworkFactory> read_script(const std::string& path, const SampleForm& form);

// The gist of what LibTorch threw: a message without the traces around it.
std::string gist_of(const std::exception& error);

}  // namespace sluice
