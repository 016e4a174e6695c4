#include "exchange/gradient_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/zeroed_buffer.h"
#include "drivers/realtime/phase.h"
#include "exchange/exchange_strategy.h"
#include "nodes/assembly.h"
#include "partition/fragments.h"

namespace sluice {
namespace {

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

// What a phase uses as long as it runs.
struct GradientExchange::Memory {
  std::vector<std::unique_ptr<Learner>> learners;  // one
  Job job;
  ChosenSizes chosen;
  bool joins_layers = true;
  bool chose_partition = false;
  NetworkFacts network;
  Clock clock;
  std::shared_ptr<const Assembly> assembly;  // null: there is no phase, and no record
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
    tune(group);
    begin(group, {});
  };
  const CollectiveCall call{.text = outline(options, layers())};
  if (steps_locally()) {  // its state begins with the parameters
    participant.together(call, [](ProcessGroup&) {});
    options.begin_with(parameters());
    participant.thread_->call(start);
  } else if (!is_alone()) {
    participant.together(call, start);
  } else if (options.record.is_wanted()) {
    participant.thread_->call(start);
  }
  if (!refused.empty()) {
    throw std::invalid_argument(refused);
  }
  if (recording_ != nullptr) {
    participant.recordings_.push_back(recording_);
  }
  if (has_phase()) {
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
void GradientExchange::tune(ProcessGroup& group) {
  memory_->network = group.tune(memory_->job, memory_->chosen);
  join_layers();
}

void GradientExchange::begin(ProcessGroup& group, const Restore& restore) {
  Memory& memory = *memory_;
  memory.assembly.reset(new Assembly(assemble(memory.job)));
  const Assembly& assembly = *memory.assembly;
  memory.clock = Clock();
  if (recording_ != nullptr) {
    memory.recording = recording_;
    recording_->begin(memory.assembly, memory.clock, memory.network, participant_.hosts_);
  }
  if (!has_phase()) {
    return;
  }
  memory.state.reset(new TrainingState(state_of(group, assembly, memory.learners, {})));
  if (restore) {
    restore(workspace().remembered());
  }
  memory.phase.reset(new Phase{.topology = assembly.job.topology,
                               .chunks = *assembly.chunks,
                               .strategy = assembly.job.strategy,
                               .rules = *assembly.rules,
                               .hosts = assembly.protocols,
                               .state = *memory.state,
                               .first = assembly.job.first,
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
  } else if (recording_ != nullptr && !has_phase()) {
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

bool GradientExchange::steps_locally() const {
  return memory_->job.strategy.algorithm == Algorithm::kLocal;
}

bool GradientExchange::gives(std::size_t layer) const {
  return learner().turns().meets_at(LayerId(layer), steps_ + 1);
}

bool GradientExchange::takes_over(std::size_t layer) const {
  return learner().turns().ends_at(LayerId(layer), steps_);
}

Workspace& GradientExchange::workspace() const {
  return memory_->state->workspace(memory_->job.topology.worker(participant_.rank()));
}

std::span<const float> GradientExchange::global_parameters() {
  return workspace().global_parameters();
}

// Of the exchanges that have begun and whose outer steps are not due yet.
bool GradientExchange::sums_are_here() const {
  const Assembly& assembly = *memory_->assembly;
  const Cadence& cadence = assembly.job.strategy.cadence;
  const auto fragments = fragments_of(*assembly.chunks, cadence.fragments);
  const auto sums = assembly.last_sums(assembly.job.topology.worker(participant_.rank()));
  for (std::size_t c = 0; c < fragments.size(); ++c) {
    if (sums[c] < cadence.under_way_at(steps_, fragments[c])) {
      return false;
    }
  }
  return true;
}

std::vector<Remembered> GradientExchange::remembered() {
  const Strategy& strategy = memory_->job.strategy;
  if (strategy.exchange == Exchange::kGossip && strategy.cadence.delay > 0) {
    throw std::invalid_argument(
        "with pairs of workers and an outer-delay the state of an exchange cannot be kept: take "
        "an outer-delay of 0");
  }
  if (!is_alone()) {
    participant_.thread_->call([this](ProcessGroup& group) {
      participant_.thread_->turn_until([this] { return sums_are_here(); }, group);
    });
  }
  return workspace().remembered();
}

void GradientExchange::go_on_after(std::int64_t steps, const Restore& restore) {
  check(steps_locally(), "only local steps have more to go on with than sums");
  if (steps_ > 0) {
    throw std::invalid_argument(
        "local steps go on from a checkpoint only before the first one: load it after attach()");
  }
  end();
  const auto former = std::exchange(memory_, std::make_shared<Memory>());
  const auto& learned = static_cast<const OpenLearner&>(*former->learners.front());
  memory_->learners.push_back(
      std::make_unique<OpenLearner>(learned.layers(), learned.shared_gradients()));
  memory_->job = former->job;
  memory_->job.first = steps;
  memory_->network = former->network;
  const auto start = [&](ProcessGroup& group) { begin(group, restore); };
  if (is_alone()) {
    participant_.thread_->call(start);
  } else {
    participant_.together({.text = fmt::format("local steps go on after {}", steps)}, start);
  }
  steps_of_phase_ = &learner().steps();
  steps_ = steps;
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
