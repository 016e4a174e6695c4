#include "session/optimizer.h"

namespace sluice {

double learning_rate_of(const OptimizerSpec& spec, const Extent& extent) {
  return spec.learning_rate * (spec.scale_by_workers ? static_cast<double>(extent.workers) : 1.0);
}

UpdateRule rule_of(const OptimizerSpec& spec, const Extent& extent) {
  UpdateRule rule{.rate = {.base = static_cast<float>(learning_rate_of(spec, extent)),
                           .warmup = extent.iterations_in(spec.warmup_epochs),
                           .warmup_from = 1 / static_cast<float>(extent.workers)},
                  .momentum = static_cast<float>(spec.momentum),
                  .weight_decay = static_cast<float>(spec.weight_decay)};
  for (const std::int64_t epoch : spec.decay_epochs) {
    rule.rate.drops.push_back(epoch * extent.per_epoch);
  }
  return rule;
}

}  // namespace sluice
