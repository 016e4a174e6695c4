#include "session/optimizer.h"

namespace sluice {
namespace {

nlohmann::ordered_json hyper_parameters(const UpdateRule& rule) {
  const EnumSet<Hyper>& takes = rule.traits().takes;
  const OptimizerOptions& options = rule.options;
  nlohmann::ordered_json all{{"weight_decay", rule.weight_decay}};
  const auto add = [&](Hyper hyper, const char* name, const auto& value) {
    if (takes.contains(hyper)) {
      all[name] = value;
    }
  };
  add(Hyper::kMomentum, "momentum", rule.momentum);
  add(Hyper::kDampening, "dampening", options.dampening);
  add(Hyper::kNesterov, "nesterov", options.nesterov);
  add(Hyper::kBeta1, "beta1", options.beta1);
  add(Hyper::kBeta2, "beta2", options.beta2);
  add(Hyper::kEpsilon, "epsilon", options.epsilon);
  add(Hyper::kAlpha, "alpha", options.alpha);
  add(Hyper::kCentered, "centered", options.centered);
  add(Hyper::kLrDecay, "lr_decay", options.lr_decay);
  return all;
}

nlohmann::ordered_json schedule_summary(const RateSchedule& rate) {
  nlohmann::ordered_json schedule{{"shape", name_of(kRateShapeNames, rate.shape)},
                                  {"warmup_iterations", rate.warmup}};
  if (rate.shape == RateShape::kStep) {
    schedule["drops_after_iterations"] = rate.drops;
    schedule["drop_factor"] = rate.drop_factor;
  } else if (rate.shape != RateShape::kConstant) {
    schedule["final_share"] = rate.final_share;
    schedule["changes_every_iterations"] = rate.steps_of;
  }
  return schedule;
}

}  // namespace

double learning_rate_of(const OptimizerSpec& spec, const Extent& extent) {
  return spec.learning_rate * (spec.scale_by_workers ? static_cast<double>(extent.workers) : 1.0);
}

Iteration warmup_of(const OptimizerSpec& spec, const Extent& extent) {
  return extent.iterations_in(spec.warmup_epochs) + spec.warmup_iterations;
}

UpdateRule rule_of(const OptimizerSpec& spec, const Extent& extent) {
  const double first = spec.warmup_from.value_or(1 / static_cast<double>(extent.workers));
  UpdateRule rule{.rate = {.base = static_cast<float>(learning_rate_of(spec, extent)),
                           .warmup = warmup_of(spec, extent),
                           .warmup_from = static_cast<float>(first),
                           .drops = spec.decay_iterations,
                           .drop_factor = static_cast<float>(spec.decay_factor),
                           .shape = spec.schedule,
                           .final_share = static_cast<float>(spec.final_share),
                           .end = extent.iterations,
                           .steps_of = spec.by_epoch ? extent.per_epoch : 1},
                  .momentum = static_cast<float>(spec.momentum),
                  .weight_decay = static_cast<float>(spec.weight_decay),
                  .optimizer = spec.optimizer,
                  .options = spec.options,
                  .clip_value = static_cast<float>(spec.clip_value),
                  .clip_norm = static_cast<float>(spec.clip_norm)};
  for (const std::int64_t epoch : spec.decay_epochs) {
    rule.rate.drops.push_back(epoch * extent.per_epoch);
  }
  return rule;
}

std::vector<Bytes> state_bytes(const UpdateRule& rule, const Assembly& assembly) {
  const Job& job = assembly.job;
  const Topology& topology = job.topology;
  const AlgorithmTraits& algorithm = traits_of(job.strategy.algorithm);
  const Bytes each = static_cast<Bytes>(rule.state().size()) * kFloatBytes;
  const bool on_servers = job.strategy.uses_servers() && !job.strategy.servers_sum() &&
                          algorithm.sends == Sends::kGradients;
  std::vector<Bytes> bytes(topology.hosts());
  if (on_servers) {
    for (const Chunk& chunk : assembly.chunks->all()) {
      bytes[topology.host_of(topology.server(chunk.server)).index()] += each * chunk.range.size();
    }
  }
  // A worker that is ahead applies its own gradients too.
  if (!on_servers || algorithm.coupling == Coupling::kBounded) {
    for (std::size_t w = 0; w < topology.workers(); ++w) {
      const HostId host = topology.host_of(topology.worker(w));
      const Bytes replica = each * total_params(job.layers);
      bytes[host.index()] =
          job.strategy.local_aggregation ? replica : bytes[host.index()] + replica;
    }
  }
  return bytes;
}

// SGD reads gradient, parameter and momentum and writes the last two. LAMB goes over a layer three
// times: it updates its means, measures the layer, and takes the step.
double update_traffic(const UpdateRule& rule) {
  constexpr double kSgd = 5;
  if (rule.optimizer == Optimizer::kSgd) {
    return 1;
  }
  const auto buffers = static_cast<double>(rule.state().size());
  return (rule.traits().whole_layers ? 13 : 3 + 2 * buffers) / kSgd;
}

nlohmann::ordered_json optimizer_summary(const UpdateRule& rule, const Assembly& assembly) {
  auto state = nlohmann::ordered_json::array();
  for (const std::string_view name : rule.state()) {
    state.push_back(name);
  }
  nlohmann::ordered_json summary{{"name", rule.traits().name},
                                 {"hyper_parameters", hyper_parameters(rule)},
                                 {"schedule", schedule_summary(rule.rate)},
                                 {"state", state},
                                 {"state_bytes_by_host", state_bytes(rule, assembly)}};
  if (rule.clip_value > 0) {
    summary["clip_value"] = rule.clip_value;
  }
  if (rule.clip_norm > 0) {
    summary["clip_norm"] = rule.clip_norm;
  }
  return summary;
}

}  // namespace sluice
