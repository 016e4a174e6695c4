#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sluice/loop.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/loop_learner.h"
#include "base/check.h"
#include "drivers/mpi/launch.h"
#include "drivers/realtime/interrupt.h"
#include "drivers/realtime/start_thread.h"
#include "nodes/presets.h"
#include "session/dedicated_servers.h"
#include "session/nonfinite.h"
#include "session/optimizer.h"
#include "session/process_group.h"
#include "session/specs.h"
#include "session/training.h"

namespace sluice {
namespace {

void say(const std::string& text) { fmt::print(stderr, "sluice: {}\n", text); }

int fail(std::size_t rank, const std::exception& why) {
  say(rank_on_host(rank) + ": " + why.what());
  return 1;
}

StrategySpec strategy_spec(const LoopOptions& options) {
  const Preset* preset = find_preset(options.preset);
  if (preset == nullptr || preset->strategy.partition == Partition::kMerged) {
    std::vector<std::string_view> names;
    for (const Preset& known : presets()) {
      if (known.strategy.partition != Partition::kMerged) {
        names.push_back(known.name);
      }
    }
    throw std::invalid_argument(fmt::format("there is no preset {} for loops; choose one of {}",
                                            options.preset, fmt::join(names, ", ")));
  }
  StrategySpec spec{.preset = options.preset, .strategy = preset->strategy, .chosen = {}};
  spec.strategy.seed = options.seed;
  return spec;
}

OptimizerSpec optimizer_spec(const LoopOptions& options) {
  OptimizerSpec spec;
  spec.learning_rate = options.learning_rate;
  spec.momentum = options.momentum;
  spec.weight_decay = options.weight_decay;
  return spec;
}

// Options that must be the same in all processes.
Agreement agreement_of(const LoopOptions& options) {
  return {{"preset", options.preset},
          {"iterations", fmt::format("{}", options.iterations)},
          {"servers", fmt::format("{}", options.servers)},
          {"learning_rate", fmt::format("{}", options.learning_rate)},
          {"momentum", fmt::format("{}", options.momentum)},
          {"weight_decay", fmt::format("{}", options.weight_decay)},
          {"seed", fmt::format("{}", options.seed)}};
}

// Every process is one worker, or a server if these are apart; or all are threads of this process.
Topology topology_of(const LoopOptions& options, const Strategy& strategy, ProcessGroup& group) {
  if (options.workers < 1 || options.iterations < 1) {
    throw std::invalid_argument(
        fmt::format("expected at least one worker and one iteration, found {} and {}",
                    options.workers, options.iterations));
  }
  if (options.servers > 0 && !strategy.uses_servers()) {
    throw std::invalid_argument(
        fmt::format("preset {} has no servers; leave the option servers at 0", options.preset));
  }
  if (group.own_host() && options.servers >= group.size()) {
    throw std::invalid_argument(fmt::format(
        "{} servers leave none of {} processes for workers; start more processes, or take fewer "
        "servers",
        options.servers, group.size()));
  }
  const auto roster = check_in(group, agreement_of(options), {});
  if (!roster) {
    throw std::invalid_argument(roster.error().message());
  }
  if (!group.own_host()) {
    return {options.workers, 1, options.servers};
  }
  const std::size_t workers = group.size() - options.servers;
  return {workers, 1, options.servers, per_machine(*roster, workers)};
}

// What must be the same for all workers.
std::string outline_of(const Learner& learner) {
  std::string outline;
  for (const Layer& layer : learner.layers()) {
    outline += fmt::format("{}{} {}", outline.empty() ? "" : ", ", layer.name, layer.range.size());
  }
  return outline;
}

class LoopRun {
 public:
  LoopRun(const LoopOptions& options, ProcessGroup& group);

  // Returns the signal that asked to stop, or 0.
  int run(const std::function<void(LoopWorker&)>& loop);

 private:
  LoopLearner& worker(std::size_t index) const {
    return static_cast<LoopLearner&>(*learners_[index]);
  }
  void run_loop(LoopLearner& worker, const std::function<void(LoopWorker&)>& loop) const;
  void check_alike(const std::string& outline, const std::string& other, std::size_t rank) const;
  // Copies the first worker's parameters to all.
  void begin_alike();
  Extent extent() const;
  void train();
  OnNonFinite on_nonfinite() const;

  const LoopOptions& options_;
  const StrategySpec strategy_;
  ProcessGroup& group_;
  const Topology topology_;
  std::vector<std::unique_ptr<Learner>> learners_;  // of this process's workers
  std::vector<Layer> layers_;                       // once all have attached
  std::optional<Interrupt> interrupt_;              // from train() on, if signals are to stop it
  std::optional<int> stopped_;                      // by which signal
};

LoopRun::LoopRun(const LoopOptions& options, ProcessGroup& group)
    : options_(options),
      strategy_(strategy_spec(options)),
      group_(group),
      topology_(topology_of(options, strategy_.strategy, group)) {
  for (const std::size_t rank : workers_here(group, topology_)) {
    learners_.push_back(
        std::make_unique<LoopLearner>(rank, topology_.workers(), options.iterations));
  }
}

int LoopRun::run(const std::function<void(LoopWorker&)>& loop) {
  std::exception_ptr failure;
  {
    std::vector<std::jthread> loops;
    try {
      for (std::size_t w = 0; w < learners_.size(); ++w) {
        loops.push_back(start_thread([&, w] { run_loop(worker(w), loop); }));
      }
      for (std::size_t w = 0; w < learners_.size(); ++w) {
        worker(w).wait_until_attached();
      }
      begin_alike();
      train();
    } catch (...) {
      failure = std::current_exception();
    }
    for (std::size_t w = 0; w < learners_.size(); ++w) {
      worker(w).run_ended(failure != nullptr);
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  for (std::size_t w = 0; w < learners_.size(); ++w) {
    worker(w).rethrow();
  }
  // A signal may also have come after the last step.
  return stopped_.value_or(interrupt_ ? interrupt_->signal() : 0);
}

void LoopRun::run_loop(LoopLearner& worker, const std::function<void(LoopWorker&)>& loop) const {
  try {
    loop(worker);
    worker.loop_ended(nullptr);
  } catch (const Stopped&) {
    worker.loop_ended(nullptr);
  } catch (...) {
    worker.loop_ended(std::current_exception());
  }
}

void LoopRun::begin_alike() {
  const std::string outline = learners_.empty() ? "" : outline_of(*learners_[0]);
  for (std::size_t w = 1; w < learners_.size(); ++w) {
    check_alike(outline, outline_of(*learners_[w]), w);
  }
  const std::string expected = group_.from_leader(outline, "the layers");
  if (!learners_.empty()) {
    check_alike(expected, outline, group_.rank());
    layers_ = learners_[0]->layers();
  }
  if (has_dedicated_servers(group_, topology_)) {
    const std::string text = group_.is_leader() ? to_text({layers_, extent()}) : "";
    layers_ = outline_from(group_.from_leader(text, "the outline of the run")).layers;
  }
  std::string own;
  if (group_.is_leader()) {
    const std::span<float> parameters = learners_[0]->parameters();
    own.assign(reinterpret_cast<const char*>(parameters.data()), parameters.size_bytes());
  }
  const std::string first = group_.from_leader(own, "the first parameters");
  for (const auto& learner : learners_) {
    check(first.size() == learner->parameters().size_bytes(),
          "workers with the same layers have as many parameters");
    std::ranges::copy(first, reinterpret_cast<char*>(learner->parameters().data()));
  }
}

void LoopRun::check_alike(const std::string& outline, const std::string& other,
                          std::size_t rank) const {
  if (outline != other) {
    throw std::invalid_argument(
        fmt::format("the layers of worker {} differ from those of worker 0: {}; expected {}", rank,
                    other, outline));
  }
}

Extent LoopRun::extent() const {
  return {.workers = topology_.workers(),
          .iterations = options_.iterations,
          .per_epoch = options_.iterations};
}

void LoopRun::train() {
  Job job;
  job.layers = layers_;
  job.topology = topology_;
  job.strategy = strategy_.strategy;
  group_.tune(job, strategy_.chosen);
  const Extent extent = this->extent();
  const UpdateRule rule = rule_of(optimizer_spec(options_), extent);
  const Clock clock;
  if (options_.stop_on_signal) {
    interrupt_.emplace();
  }
  const Trained trained =
      run_training(job, {.group = group_,
                         .learners = learners_,
                         .rule = rule,
                         .extent = extent,
                         .clock = clock,
                         .on_nonfinite = on_nonfinite(),
                         .interrupted = [this] { return interrupt_ ? interrupt_->signal() : 0; }});
  stopped_ = trained.stopped;
}

OnNonFinite LoopRun::on_nonfinite() const {
  return options_.stop_on_nonfinite
             ? stop_on_nonfinite(layers_,
                                 "try a lower learning_rate, or continue anyway with "
                                 "stop_on_nonfinite = false")
             : warn_of_nonfinite(layers_, say);
}

}  // namespace

int run_loops(const LoopOptions& options, const std::function<void(LoopWorker&)>& loop) {
  const auto joined = join_processes(say, fail, MpiLife::kProcess);
  if (!joined) {
    throw std::runtime_error(joined.error().message());
  }
  ProcessGroup& group = **joined;
  try {
    return LoopRun(options, group).run(loop);
  } catch (const std::exception& e) {
    if (group.own_host()) {
      group.abort(fail(group.rank(), e));
    }
    throw;
  }
}

}  // namespace sluice
