#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sluice/loop.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "api/loop_learner.h"
#include "drivers/mpi/launch.h"
#include "model/alike.h"
#include "nodes/presets.h"
#include "session/drive.h"

namespace sluice {
namespace {

void say(const std::string& text) { fmt::print(stderr, "sluice: {}\n", text); }

Strategy strategy_of(const LoopOptions& options) {
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
  Strategy strategy = preset->strategy;
  strategy.seed = options.seed;
  return strategy;
}

// What all workers must have alike.
std::string outline_of(const Learner& learner) {
  std::string outline;
  for (const Layer& layer : learner.layers()) {
    outline += fmt::format("{}{} {}", outline.empty() ? "" : ", ", layer.name, layer.range.size());
  }
  return outline;
}

// All processes go on only if their options are alike; the number of threads is not read then.
void agree_on(const LoopOptions& options, MpiWorld& world) {
  const Json own{{"preset", options.preset},
                 {"iterations", options.iterations},
                 {"learning_rate", options.learning_rate},
                 {"momentum", options.momentum},
                 {"weight_decay", options.weight_decay},
                 {"seed", options.seed}};
  const std::vector<std::string> all = world.gather(own.dump(), "its options");
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (const std::string fault = difference(Json::parse(all[rank]), own); !fault.empty()) {
      throw std::invalid_argument(fmt::format("rank {} {}", rank, fault));
    }
  }
}

class LoopRun {
 public:
  LoopRun(const LoopOptions& options, MpiWorld* world);

  void run(const std::function<void(LoopWorker&)>& loop);

 private:
  LoopLearner& worker(std::size_t index) const {
    return static_cast<LoopLearner&>(*learners_[index]);
  }
  void run_loop(LoopLearner& worker, const std::function<void(LoopWorker&)>& loop) const;
  void check_alike(const std::string& outline, const std::string& other, std::size_t rank) const;
  // The first worker's parameters become those of all.
  void begin_alike();
  void train();

  const LoopOptions& options_;
  const Strategy strategy_;
  MpiWorld* world_;                                 // null: alone
  std::size_t workers_;                             // of all processes
  std::vector<std::unique_ptr<Learner>> learners_;  // of this one
};

LoopRun::LoopRun(const LoopOptions& options, MpiWorld* world)
    : options_(options),
      strategy_(strategy_of(options)),
      world_(world),
      workers_(world != nullptr ? world->size() : options.workers) {
  if (options.workers < 1 || options.iterations < 1) {
    throw std::invalid_argument(
        fmt::format("expected at least one worker and one iteration, found {} and {}",
                    options.workers, options.iterations));
  }
  const std::size_t first = world != nullptr ? world->rank() : 0;
  const std::size_t here = world != nullptr ? 1 : workers_;
  for (std::size_t w = 0; w < here; ++w) {
    learners_.push_back(std::make_unique<LoopLearner>(first + w, workers_, options.iterations));
  }
}

void LoopRun::run(const std::function<void(LoopWorker&)>& loop) {
  std::exception_ptr failure;
  {
    std::vector<std::jthread> loops;
    for (std::size_t w = 0; w < learners_.size(); ++w) {
      loops.emplace_back([&, w] { run_loop(worker(w), loop); });
    }
    try {
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
}

void LoopRun::run_loop(LoopLearner& worker, const std::function<void(LoopWorker&)>& loop) const {
  try {
    loop(worker);
    worker.loop_ended(nullptr);
  } catch (...) {
    worker.loop_ended(std::current_exception());
  }
}

void LoopRun::begin_alike() {
  const std::string outline = outline_of(*learners_[0]);
  for (std::size_t w = 1; w < learners_.size(); ++w) {
    check_alike(outline, outline_of(*learners_[w]), w);
  }
  std::string first(reinterpret_cast<const char*>(learners_[0]->parameters().data()),
                    learners_[0]->parameters().size_bytes());
  if (world_ != nullptr) {
    const std::string leading = world_->broadcast(outline, "the layers");
    check_alike(leading, outline, world_->rank());
    first = world_->broadcast(world_->rank() == 0 ? first : "", "the first parameters");
  }
  for (const auto& learner : learners_) {
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

void LoopRun::train() {
  Job job;
  job.layers = learners_[0]->layers();
  job.topology =
      Topology(workers_, 1, 0, world_ != nullptr ? processes_per_machine(world_->machines()) : 1);
  job.strategy = strategy_;
  tune_for_world(world_, job, {});
  const Assembly assembly = assemble(std::move(job));
  const UpdateRule rule{.rate = {.base = options_.learning_rate},
                        .momentum = options_.momentum,
                        .weight_decay = options_.weight_decay};
  TrainingState state = state_of(world_, assembly, learners_, rule);
  const Clock clock;
  drive(world_,
        {.topology = assembly.job.topology,
         .chunks = *assembly.chunks,
         .strategy = assembly.job.strategy,
         .rules = *assembly.rules,
         .hosts = assembly.protocols,
         .state = state,
         .last = options_.iterations,
         .clock = clock,
         .on_step = {},
         .on_boundary = {}},
        say);
}

}  // namespace

void run_loops(const LoopOptions& options, const std::function<void(LoopWorker&)>& loop) {
  if (!find_launch() && !program_runs_mpi()) {
    LoopRun(options, nullptr).run(loop);
    return;
  }
  const auto world = join_mpi(say, MpiLife::kProcess);
  if (!world) {
    throw std::runtime_error(world.error().message());
  }
  try {
    (*world)->meet();
    agree_on(options, **world);
    LoopRun(options, world->get()).run(loop);
  } catch (const std::exception& e) {
    say(rank_on_host((*world)->rank()) + ": " + e.what());
    (*world)->abort(1);
  }
}

}  // namespace sluice
