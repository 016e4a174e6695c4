#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"

namespace sluice {

// The parameters of a model that someone has trained, to start from.
struct SavedModel {
  std::string path;  // where they were found, for messages
  // As a file of its own has them: under their names in the module. Else as a checkpoint has them:
  // "parameters", all in one, and "0", "1", ..., what the learner of worker 0 remembered, of which
  // what an optimiser remembers comes last.
  bool by_name = true;
  // Statistics of batch normalisation do not belong to these parameters.
  bool lacks_statistics = false;
  std::vector<TensorCopy> tensors = {};
};

// Reads a safetensors file, the folder of a saved model, a checkpoint, or the newest sound one of a
// folder of checkpoints. They may come from anyone.
Result<SavedModel> read_saved_model(const std::filesystem::path& path);

}  // namespace sluice
