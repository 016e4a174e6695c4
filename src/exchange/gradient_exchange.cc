#include "exchange/gradient_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/zeroed_buffer.h"
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
  return summing(strategy).learners_can_update() && strategy.partition != Partition::kMerged &&
         !strategy.factored();
}

bool can_exchange(const Preset& preset) {
  return can_exchange(preset.strategy) && !preset.strategy.coded();
}

Strategy checked(const Strategy& strategy, const Topology& topology) {
  if (!can_exchange(strategy)) {
    throw std::invalid_argument(fmt::format(
        "algorithm {}, exchange {}, partition {} and codec {} do not sum gradients for the "
        "program's own optimizer: it takes algorithm bsp, an exchange with servers or allreduce, "
        "a codec that is dense, and another partition than merged",
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
  const RecordingSpec& record = options.record;
  return fmt::format("an exchange by {}{} of {} layers ({}){}{}", options.preset, axes_of(options),
                     layers.size(), fmt::join(texts, ", "),
                     record.is_wanted() ? " with a record" : "",
                     record.trace.empty() ? "" : " and a trace");
}

std::shared_ptr<float[]> ordinary_memory(std::size_t floats) {
  const auto buffer = std::make_shared<ZeroedBuffer>(floats);
  return {buffer, buffer->values().data()};
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

// What a phase uses as long as it runs.
struct GradientExchange::Memory {
  std::vector<std::unique_ptr<Learner>> learners;  // one
  Job job;
  ChosenSizes chosen;
  bool joins_layers = true;
  bool chose_partition = false;
  Clock clock;
  std::shared_ptr<const Assembly> assembly;  // null: this process is alone, without a record
  std::shared_ptr<Recording> recording;      // which the phase observes with
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<const Phase> phase;
};

GradientExchange::GradientExchange(Participant& participant, const Options& options,
                                   const std::vector<std::string>& names,
                                   const std::vector<std::int64_t>& sizes)
    : participant_(participant), memory_(std::make_shared<Memory>()) {
  std::vector<Layer> laid_out = lay_out(names, sizes);
  const auto floats = static_cast<std::size_t>(total_params(laid_out));
  memory_->learners.push_back(std::make_unique<OpenLearner>(
      std::move(laid_out), options.allocate ? options.allocate(floats) : ordinary_memory(floats)));
  reported_.assign(names.size(), false);
  memory_->job.layers = layers();
  memory_->job.topology = Topology(participant.size(), 1, 0, participant.per_machine_);
  memory_->job.strategy = exchange_strategy(options, memory_->job.topology);
  memory_->chosen = options.chosen;
  memory_->joins_layers = options.joins_layers;
  memory_->chose_partition = options.chose_partition;
  std::string refused;
  const auto start = [&](ProcessGroup& group) {
    if (options.record.is_wanted()) {
      auto opened = Recording::open(group, options.record, options.preset, memory_->job);
      if (!opened) {
        refused = opened.error().message();
        return;
      }
      recording_ = *std::move(opened);
    }
    begin(group);
  };
  if (!is_alone()) {
    participant.together({.text = outline(options, layers())}, start);
  } else if (options.record.is_wanted()) {
    participant.thread_->call(start);
  }
  if (!refused.empty()) {
    throw std::invalid_argument(refused);
  }
  if (recording_ != nullptr) {
    participant.recordings_.push_back(recording_);
  }
  if (!is_alone()) {
    steps_of_phase_ = &learner().steps();
  }
  participant.exchanges_.push_back(this);
}

GradientExchange::~GradientExchange() {
  try {
    end();
  } catch (...) {  // NOLINT(bugprone-empty-catch): whoever waits next hears of it
  }
  std::erase(participant_.exchanges_, this);
}

OpenLearner& GradientExchange::learner() const {
  return static_cast<OpenLearner&>(*memory_->learners.front());
}

// All processes are here, and none waits for a sum meanwhile.
void GradientExchange::begin(ProcessGroup& group) {
  Memory& memory = *memory_;
  const NetworkFacts network = group.tune(memory.job, memory.chosen);
  join_layers();
  memory.assembly.reset(new Assembly(assemble(memory.job)));
  const Assembly& assembly = *memory.assembly;
  memory.clock = Clock();
  if (recording_ != nullptr) {
    memory.recording = recording_;
    recording_->begin(memory.assembly, memory.clock, network, participant_.hosts_);
  }
  if (is_alone()) {
    return;
  }
  memory.state.reset(new TrainingState(state_of(group, assembly, memory.learners, {})));
  memory.phase.reset(new Phase{.topology = assembly.job.topology,
                               .chunks = *assembly.chunks,
                               .strategy = assembly.job.strategy,
                               .rules = *assembly.rules,
                               .hosts = assembly.protocols,
                               .state = *memory.state,
                               .first = 0,
                               .last = std::numeric_limits<Iteration>::max(),
                               .clock = memory.clock,
                               .observer = recording_ ? &recording_->observer() : nullptr,
                               .on_step = on_step(group.is_leader()),
                               .on_boundary = {},
                               .is_open = true});
  participant_.thread_->carry_out(group.begin(*memory.phase), memory_);
}

// A preset with partition layer means that slices are not cut, not that tiny layers go one by one;
// whoever sets the partition means it.
void GradientExchange::join_layers() {
  Strategy& strategy = memory_->job.strategy;
  if (!memory_->joins_layers) {
    strategy.join_params = 0;
  } else if (strategy.partition == Partition::kLayer && !memory_->chose_partition) {
    strategy.join_params = tiny_params(memory_->job);
  }
}

// Empty if nobody keeps a record in this process.
std::function<void(const StepReport&)> GradientExchange::on_step(bool leads) const {
  if (recording_ == nullptr || !leads) {
    return {};
  }
  return [recording = recording_](const StepReport& step) { recording->on_step(step); };
}

void GradientExchange::enter(std::size_t layer) {
  if (recording_ != nullptr) {
    recording_->enter(LayerId(layer), steps_);
  }
}

void GradientExchange::forward_done() {
  if (recording_ != nullptr) {
    recording_->forward_done(steps_);
  }
}

void GradientExchange::gradient_ready(std::size_t layer) {
  if (recording_ != nullptr) {
    recording_->gradient_ready(LayerId(layer), steps_);
  }
  if (steps_of_phase_ != nullptr) {
    reported_[layer] = true;
    steps_of_phase_->gradient_ready(LayerId(layer));
    participant_.thread_->nudge();
  }
}

void GradientExchange::end_step(std::optional<double> loss) {
  if (steps_of_phase_ != nullptr) {
    steps_of_phase_->end_step(loss);
    participant_.thread_->nudge();
    std::fill(reported_.begin(), reported_.end(), false);
  } else if (recording_ != nullptr && is_alone()) {
    recording_->on_step({.iteration = steps_, .loss = loss, .at = memory_->clock.now()});
  }
  ++steps_;
}

void GradientExchange::wait(std::size_t layer, const std::function<void()>& work) {
  if (steps_of_phase_ == nullptr) {
    return;
  }
  const Time begin = memory_->clock.now();
  const bool at_once = steps_of_phase_->before_layer_meanwhile(LayerId(layer), work);
  if (!at_once && recording_ != nullptr) {
    recording_->waited(LayerId(layer), steps_, begin);
  }
}

bool GradientExchange::is_here(std::size_t layer) {
  return steps_of_phase_ == nullptr || steps_of_phase_->released(LayerId(layer));
}

bool GradientExchange::in_step() const {
  return std::find(reported_.begin(), reported_.end(), true) != reported_.end();
}

void GradientExchange::end() {
  if (steps_of_phase_ == nullptr) {
    return;
  }
  if (in_step()) {
    for (std::size_t l = 0; l < reported_.size(); ++l) {
      if (!reported_[l]) {
        gradient_ready(l);
      }
    }
    end_step();
  }
  steps_of_phase_ = nullptr;
  learner().end();
  participant_.thread_->nudge();
}

void GradientExchange::fail(std::exception_ptr why) { learner().fail(std::move(why)); }

Counters GradientExchange::counters() {
  Counters counters;
  if (memory_->assembly != nullptr) {
    participant_.thread_->call([&](ProcessGroup&) { counters = memory_->assembly->counters(); });
  }
  return counters;
}

}  // namespace sluice
