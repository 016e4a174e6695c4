#pragma once

#include <sluice/loop.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/loop_model.h"
#include "exchange/participant.h"

namespace sluice {

using LoopModels = std::vector<std::unique_ptr<ExchangedModel>>;

// As LoopWorker has them. Collective.
void save_checkpoint(Participant& participant, const LoopModels& models,
                     const LoopWorker::NamedParameters& more, const std::string& folder,
                     std::int64_t iteration, std::size_t keep);
std::int64_t load_checkpoint(Participant& participant, const LoopModels& models,
                             const LoopWorker::NamedParameters& more, const std::string& folder);

}  // namespace sluice
