#include "exchange/gradient_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "drivers/realtime/phase.h"
#include "nodes/assembly.h"
#include "nodes/presets.h"
#include "nodes/validate.h"

namespace sluice {
namespace {

// With sums instead of updates.
Strategy summing(Strategy strategy) {
  strategy.update = Update::kWorker;
  strategy.learners_update = true;
  return strategy;
}

bool can_exchange(const Strategy& strategy) {
  return summing(strategy).learners_can_update() && strategy.partition != Partition::kMerged;
}

bool can_exchange(const Preset& preset) {
  return can_exchange(preset.strategy) && !preset.strategy.coded();
}

Strategy checked(const Strategy& strategy, const Topology& topology) {
  if (!can_exchange(strategy)) {
    throw std::invalid_argument(fmt::format(
        "algorithm {}, exchange {}, partition {} and codec {} do not sum gradients for the "
        "program's own optimizer: it takes algorithm bsp, an exchange with servers or allreduce, "
        "a codec that is dense, no local aggregation, and another partition than merged",
        name_of(kAlgorithmNames, strategy.algorithm), name_of(kExchangeNames, strategy.exchange),
        name_of(kPartitionNames, strategy.partition), name_of(kCodecNames, strategy.codec)));
  }
  Strategy sums = summing(strategy);
  if (const auto valid = validate(sums); !valid) {
    throw std::invalid_argument(valid.error().message());
  }
  if (const auto valid = check_driver_sums(sums, topology); !valid) {
    throw std::invalid_argument(valid.error().message());
  }
  return sums;
}

Strategy exchange_strategy(const GradientExchange::Options& options, const Topology& topology) {
  if (options.strategy) {
    return checked(*options.strategy, topology);
  }
  const Preset* preset = find_preset(options.preset);
  if (preset == nullptr || !can_exchange(*preset)) {
    throw std::invalid_argument(
        fmt::format("no preset {} sums gradients for the program's own optimizer; choose one of {}",
                    options.preset, fmt::join(exchange_presets(), ", ")));
  }
  Strategy strategy = summing(preset->strategy);
  if (options.half_precision) {
    strategy.codec = Codec::kTruncate16;
  }
  return strategy;
}

// The axes that the processes must agree on, beside the preset.
std::string axes_of(const GradientExchange::Options& options) {
  if (!options.strategy) {
    return options.half_precision ? " in 16 bits" : "";
  }
  const Strategy& strategy = *options.strategy;
  return fmt::format(
      " ({}, {}, {}, {}, {}{})", name_of(kExchangeNames, strategy.exchange),
      name_of(kPartitionNames, strategy.partition), name_of(kOrderNames, strategy.order),
      name_of(kCodecNames, strategy.codec),
      strategy.collective ? name_of(kCollectiveNames, *strategy.collective) : "auto",
      options.chosen.slice ? fmt::format(", slices of {}", strategy.slice_params) : "");
}

std::string outline(const GradientExchange::Options& options, const std::vector<Layer>& layers) {
  std::vector<std::string> texts;
  for (const Layer& layer : layers) {
    texts.push_back(fmt::format("{} {}", layer.name, layer.range.size()));
  }
  return fmt::format("an exchange by {}{} of {} layers ({})", options.preset, axes_of(options),
                     layers.size(), fmt::join(texts, ", "));
}

}  // namespace

std::vector<std::string> exchange_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (can_exchange(preset)) {
      names.emplace_back(preset.name);
    }
  }
  return names;
}

GradientExchange::GradientExchange(Participant& participant, const Options& options,
                                   const std::vector<std::string>& names,
                                   const std::vector<std::int64_t>& sizes)
    : participant_(participant), chosen_(options.chosen) {
  learners_.push_back(std::make_unique<OpenLearner>(lay_out(names, sizes)));
  reported_.assign(names.size(), false);
  job_.layers = layers();
  job_.topology = Topology(participant.size(), 1, 0, participant.per_machine_);
  job_.strategy = exchange_strategy(options, job_.topology);
  participant.together(outline(options, layers()), [](ProcessGroup&) {});
}

GradientExchange::~GradientExchange() {
  try {
    if (in_step()) {
      for (std::size_t l = 0; l < reported_.size(); ++l) {
        if (!reported_[l]) {
          gradient_ready(l);
        }
      }
      end_step();
    }
    pause();
  } catch (...) {  // NOLINT(bugprone-empty-catch): whoever waits next hears of it
  }
}

void GradientExchange::begin() {
  if (steps_of_phase_ == nullptr) {
    participant_.pause();
    participant_.exchanging_ = this;
    participant_.thread_->post([this](ProcessGroup& group) { train(group); });
    steps_of_phase_ = &learner().steps();
  }
}

void GradientExchange::gradient_ready(std::size_t layer) {
  if (participant_.size() > 1) {
    begin();
    reported_[layer] = true;
    steps_of_phase_->gradient_ready(LayerId(layer));
  }
}

void GradientExchange::end_step() {
  if (participant_.size() > 1) {
    begin();
    steps_of_phase_->end_step(std::nullopt);
    std::fill(reported_.begin(), reported_.end(), false);
  }
  ++steps_;
}

void GradientExchange::wait(std::size_t layer) {
  if (steps_of_phase_ != nullptr) {
    steps_of_phase_->before_layer(LayerId(layer));
  }
}

bool GradientExchange::is_here(std::size_t layer) {
  return steps_of_phase_ == nullptr || steps_of_phase_->released(LayerId(layer));
}

bool GradientExchange::in_step() const {
  return std::find(reported_.begin(), reported_.end(), true) != reported_.end();
}

void GradientExchange::pause() {
  if (in_step()) {
    throw std::logic_error(
        "a collective call in the middle of a step: some gradients have left already; make it "
        "before the backward pass or after the step");
  }
  if (std::exchange(steps_of_phase_, nullptr) != nullptr) {
    participant_.exchanging_ = nullptr;
    learner().end();
    participant_.thread_->wait();
  }
}

void GradientExchange::fail(std::exception_ptr why) { learner().fail(std::move(why)); }

void GradientExchange::train(ProcessGroup& group) {
  try {
    group.meet();  // others may come much later
    if (!std::exchange(tuned_, true)) {
      group.tune(job_, chosen_);
    }
    job_.first = steps_;
    const Assembly assembly = assemble(job_);
    TrainingState state = state_of(group, assembly, learners_, {});
    const Clock clock;
    group.train({.topology = assembly.job.topology,
                 .chunks = *assembly.chunks,
                 .strategy = assembly.job.strategy,
                 .rules = *assembly.rules,
                 .hosts = assembly.protocols,
                 .state = state,
                 .first = job_.first,
                 .last = std::numeric_limits<Iteration>::max(),
                 .clock = clock,
                 .on_step = {},
                 .on_boundary = {}});
    counters_ += assembly.counters();
  } catch (...) {
    learner().fail(std::current_exception());
    throw;
  }
}

}  // namespace sluice
