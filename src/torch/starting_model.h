#pragma once

#include <memory>

#include "base/result.h"
#include "formats/saved_model.h"
#include "learners/learner.h"
#include "torch/network.h"

namespace sluice {

// The same networks with the parameters and buffers of a saved model that has them by name. An
// error names those that are missing, too many or of another shape. A file that has one name of a
// tensor with several is enough for all of them.
Result<NetworkFactory> starting_with(const NetworkFactory& make,
                                     const std::shared_ptr<const SavedModel>& saved);

// The same learners with the parameters and the state of a checkpoint.
Result<LearnerFactory> starting_with(const LearnerFactory& make,
                                     const std::shared_ptr<const SavedModel>& saved);

}  // namespace sluice
