// How a session makes its job: tuned to the network, with the codec that pays.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/message_size.h"
#include "nodes/validate_update.h"
#include "planner/arithmetic_cost.h"
#include "session/optimizer.h"
#include "session/training_session.h"

namespace sluice {
namespace {

// The hosts of a job as the simulator sees them, from what was measured.
Cluster cluster_of(const Job& job, const ArithmeticCost& arithmetic) {
  Cluster cluster;
  cluster.topology = job.topology;
  cluster.bandwidth_gbps = job.link.gbps();
  cluster.latency = job.link.startup;
  cluster.reduce_ns_per_byte = arithmetic.reduce_ns_per_byte;
  cluster.update_ns_per_byte = arithmetic.update_ns_per_byte;
  cluster.code_ns_per_byte = arithmetic.code_ns_per_byte;
  cluster.server_threads = job.server_threads;
  cluster.sending = cluster.receiving = {.startup = from_ns(MessageSize::kMessageNs)};
  return cluster;
}

// The layers of a model whose times nobody knows yet.
Profile without_times(const std::vector<Layer>& layers) {
  Profile profile;
  for (const Layer& layer : layers) {
    profile.layers.push_back(untimed(layer));
  }
  return profile;
}

}  // namespace

Job TrainingSession::make_job(const std::vector<Layer>& layers) const {
  Job job;
  job.layers = layers;
  job.topology = topology_;
  job.strategy = before_choice(spec_.strategy);
  job.strategy.local_aggregation =
      job.strategy.local_aggregation && topology_.workers_per_machine() > 1;
  job.strategy.sums_first = sums_first(rule_);
  job.strategy.pipeline_warmup =
      std::max(job.strategy.pipeline_warmup, warmup_of(spec_.optimizer, work_.extent));
  job.strategy.dgc.epoch_iterations = work_.extent.per_epoch;
  return job;
}

CodecChoice TrainingSession::predicted_codec(const Job& job, const NetworkFacts& network) const {
  const StrategySpec& strategy = spec_.strategy;
  if (!network.link) {
    return {.automatic = !strategy.codecs.empty(),
            .codec = strategy.codecs.empty() ? strategy.strategy.codec : Codec::kNone,
            .forecasts = {}};
  }
  const Clock clock;
  const auto now = [&] { return clock.now(); };
  Profile profile = without_times(job.layers);
  if (const auto* replayed = std::get_if<ProfileSpec>(&spec_.work)) {
    if (const auto known = scaled_profile(*replayed)) {
      profile = *known;
    }
  }
  return choose_codec(
      {.strategy = strategy,
       .profile = profile,
       .cluster = cluster_of(job, measured_arithmetic(now)),
       .code_ns_per_byte = [&](Codec codec) { return measured_packing(codec, now); }});
}

Job TrainingSession::tuned_job(const std::vector<Layer>& layers,
                               std::span<const std::unique_ptr<Learner>> learners,
                               NetworkFacts& network) {
  const auto tune = [&] {
    Job job = make_job(layers);
    leave_to_learners(learners, job.strategy);
    network = group_.tune(job, spec_.strategy.chosen);
    return job;
  };
  Job job = tune();
  if (group_.is_leader() && network.link) {
    log_.info(fmt::format("links of {:.3g} Gb/s and {:.0f} us", network.link->gbps(),
                          to_us(network.link->startup)));
  }
  if (group_.is_leader() && job.strategy.local_aggregation &&
      !spec_.strategy.strategy.local_aggregation) {
    log_.info("the workers of a machine add their gradients before one of them exchanges the sum");
  }
  if (!asks_for_codec(spec_.strategy) || group_.virtual_now()) {
    return job;
  }
  const std::string own =
      group_.is_leader() ? to_json(chosen_codec(job, network)).dump() : std::string();
  codec_choice_ = codec_choice_from(group_.from_leader(own, "the choice of a codec"));
  if (group_.is_leader()) {
    log_.info(text_of(*codec_choice_));
  }
  spec_.strategy = settled(spec_.strategy, codec_choice_);
  if (codec_choice_->codec != job.strategy.codec) {
    job = tune();
  }
  job.link.code_ns_per_byte = codec_choice_->code_ns_per_byte;
  return job;
}

}  // namespace sluice
