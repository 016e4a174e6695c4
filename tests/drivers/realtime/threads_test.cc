// The threads driver: what it adds to the protocol, above all how it ends. Runs under the thread
// sanitizer too.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "drivers/realtime/gate.h"
#include "drivers/realtime/mailbox.h"
#include "drivers/realtime/work_threads.h"
#include "nodes/presets.h"
#include "report/tally.h"
#include "support/talkative.h"
#include "support/threaded.h"
#include "support/toy_learner.h"
#include "support/whole_numbers.h"

namespace sluice {
namespace {

using testing::run_threaded;
using testing::toy_learners;

// Fails in the middle of an iteration, when its peers wait for its gradients.
class FailingLearner final : public Learner {
 public:
  explicit FailingLearner(std::unique_ptr<Learner> inner) : inner_(std::move(inner)) {}
  const std::vector<Layer>& layers() const override { return inner_->layers(); }
  std::span<float> parameters() override { return inner_->parameters(); }
  std::span<float> gradients() override { return inner_->gradients(); }
  void gradients_into(std::span<float> buffer) override { inner_->gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    if (iteration == 3) {
      throw std::runtime_error("the data ran out");
    }
    return inner_->step(iteration, hooks);
  }
  std::optional<Evaluation> evaluate() override { return inner_->evaluate(); }

 private:
  std::unique_ptr<Learner> inner_;
};

TEST(Threads, AFailingWorkerEndsTheRunWithItsReason) {
  auto learners = toy_learners({100, 50}, 3);
  learners[1] = std::make_unique<FailingLearner>(std::move(learners[1]));
  for (const Preset& preset : presets()) {
    try {
      run_threaded(learners, Topology(3, 1, 0), preset.strategy, {}, 10);
      ADD_FAILURE() << "the run should have failed";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the data ran out");
    }
  }
}

TEST(Threads, TheTallySeesWhatTheCountersCount) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    Strategy strategy = testing::talkative(preset.strategy);
    strategy.slice_params = 16;
    const Topology topology(3, 1, 0);
    Tally tally(topology);
    const auto learners = toy_learners({100, 50, 7}, 3);
    const Assembly assembly = run_threaded(learners, topology, strategy, {}, 20, &tally);
    const Counters counters = assembly.counters();
    EXPECT_EQ(counters.releases, 3 * 3 * 21);
    EXPECT_GT(counters.messages, 0);
    std::int64_t bytes = 0;
    for (const Traffic& traffic : tally.sent_by_kind()) {
      bytes += traffic.bytes;
    }
    EXPECT_EQ(bytes, counters.payload_bytes) << "nothing is in flight at the end";
  }
}

// Velocities, servers' parameters and gradients are kept; protocols and gates are new.
TEST(Threads, ARunInStretchesEndsWithTheBitsOfARunAtOnce) {
  const UpdateRule rule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 1e-3F};
  for (const Preset& preset : presets()) {
    if (preset.strategy.algorithm != Algorithm::kBsp) {
      continue;
    }
    SCOPED_TRACE(preset.name);
    Strategy strategy = preset.strategy;
    strategy.slice_params = 16;
    const Topology topology(3, 1, 0);
    const auto at_once = toy_learners({100, 0, 50, 7}, 3);
    run_threaded(at_once, topology, strategy, rule, 20);
    const auto in_phases = toy_learners({100, 0, 50, 7}, 3);
    Job job = testing::job_for(in_phases, topology, strategy);
    TrainingState state = testing::state_for(in_phases, assemble(job), rule);
    for (const Iteration last : {3, 11, 20}) {
      testing::run_phase(assemble(job), state, last);
      job.first = last;
    }
    for (const auto& learner : in_phases) {
      const auto expected = at_once.front()->parameters();
      EXPECT_TRUE(std::ranges::equal(learner->parameters(), expected));
    }
  }
}

// With no learning, as in ad_psgd_worker_test.cc.
TEST(Threads, NoSwapIsLostAtTheEndOfAPhase) {
  constexpr std::size_t kWorkers = 5;
  for (const bool aside : {false, true}) {
    const auto learners = toy_learners({100, 50}, kWorkers);
    for (std::size_t w = 0; w < kWorkers; ++w) {
      std::ranges::fill(learners[w]->parameters(), static_cast<float>(w));
    }
    const Assembly assembly = assemble(
        testing::job_for(learners, Topology(kWorkers, 1, 0), find_preset("ad-psgd")->strategy));
    TrainingState state = testing::state_for(learners, assembly, {.rate = {.base = 0}});
    const Offloading all{.while_busy = 1, .while_idle = 1, .threads = 2, .min_part = 10};
    const auto offloading = aside ? std::optional(all) : std::nullopt;
    Iteration first = 0;
    for (const Iteration last : {1, 2, 6}) {
      testing::run_phase(assembly, state, last, nullptr, offloading, first);
      float sum = 0;
      for (const auto& learner : learners) {
        sum += learner->parameters().front();
      }
      EXPECT_EQ(sum, 10);
      first = last;
    }
  }
}

// SSP: a worker goes on while its gradient is on the way to the server, also at the end.
TEST(Threads, NoGradientIsLostAtTheEndOfAPhase) {
  constexpr std::size_t kWorkers = 4;
  const auto learners = testing::whole_numbers({100, 50}, kWorkers);
  const Assembly assembly =
      assemble(testing::job_for(learners, Topology(kWorkers, 1, 0), find_preset("ssp")->strategy));
  // With this rate the parameters become the sum of all gradients.
  const UpdateRule rule{.rate = {.base = -4}, .momentum = 0, .weight_decay = 0};
  TrainingState state = testing::state_for(learners, assembly, rule);
  const auto of_servers = [&](const Chunk& chunk) {
    const NodeId server = assembly.job.topology.server(chunk.server);
    return state.workspace(server).view({Buffer::kParameters, chunk.range}).front();
  };
  std::vector<float> sums;
  for (const Chunk& chunk : assembly.chunks->all()) {
    std::ranges::fill(state.workspace(assembly.job.topology.server(chunk.server))
                          .view({Buffer::kParameters, chunk.range}),
                      0.0F);
    sums.push_back(0);
  }
  Iteration first = 0;
  for (const Iteration last : {1, 4, 9}) {
    testing::run_phase(assembly, state, last, nullptr, std::nullopt, first);
    for (std::size_t c = 0; c < assembly.chunks->size(); ++c) {
      const Chunk& chunk = (*assembly.chunks)[ChunkId(c)];
      for (Iteration t = first; t < last; ++t) {
        for (std::size_t rank = 0; rank < kWorkers; ++rank) {
          sums[c] += testing::WholeNumbers::gradient(chunk.range.begin, rank, t);
        }
      }
      EXPECT_EQ(of_servers(chunk), sums[c]);
    }
    first = last;
  }
}

TEST(Threads, BoundariesAreMetOnceHoweverTheRunIsSplit) {
  const auto learners = toy_learners({10, 4}, 2);
  Job job = testing::job_for(learners, Topology(2, 1, 0), find_preset("wfbp")->strategy);
  TrainingState state = testing::state_for(learners, assemble(job), {});
  const Clock clock;
  std::vector<Iteration> boundaries;
  for (const Iteration last : {4, 6, 9}) {
    const Assembly assembly = assemble(job);
    train_on_threads({.topology = job.topology,
                      .chunks = *assembly.chunks,
                      .strategy = job.strategy,
                      .rules = *assembly.rules,
                      .hosts = assembly.protocols,
                      .state = state,
                      .first = job.first,
                      .last = last,
                      .clock = clock,
                      .on_step = {},
                      .on_boundary = [&](Iteration t) { boundaries.push_back(t); },
                      .boundary_every = 2});
    job.first = last;
  }
  EXPECT_EQ(boundaries, (std::vector<Iteration>{2, 4, 6, 8}));
}

TEST(Threads, AClosedMailboxIsEmptiedFirst) {
  Mailbox mailbox;
  mailbox.post(Started{NodeId(3)});
  mailbox.close();
  std::deque<Event> events;
  EXPECT_TRUE(mailbox.wait(events));
  EXPECT_EQ(events.size(), 1U);
  events.clear();
  EXPECT_FALSE(mailbox.wait(events));
}

TEST(Threads, AGateReleasesInOrderOnly) {
  Gate gate(2);
  gate.release(LayerId(0), 0);
  EXPECT_TRUE(gate.wait(LayerId(0), 0));
  EXPECT_THROW(gate.release(LayerId(0), 0), InvariantError);
  EXPECT_THROW(gate.release(LayerId(1), 1), InvariantError);
  gate.cancel();
  EXPECT_THROW(gate.wait(LayerId(1), 0), Cancelled);
}

TEST(Threads, AGateThatIsWaitedForTellsOfOtherLayers) {
  Gate gate(3);
  const Gate::Position waiting{LayerId(0), 0, true};
  std::vector<LayerId> released;
  const auto work = [&] {
    EXPECT_EQ(gate.position(), waiting);
    const LayerId next(2 - released.size());
    gate.release(next, 0);
    EXPECT_TRUE(gate.wait(next, 0, [] { ADD_FAILURE() << "it is here"; }));
    released.push_back(next);
  };
  EXPECT_FALSE(gate.wait(LayerId(0), 0, work));
  EXPECT_EQ(released, (std::vector{LayerId(2), LayerId(1), LayerId(0)}));
  gate.cancel();
  EXPECT_THROW(gate.wait(LayerId(0), 1, work), Cancelled);
}

// Computes nothing; reports afterwards what an accelerator did.
class DeviceLearner final : public Learner {
 public:
  explicit DeviceLearner(std::unique_ptr<Learner> inner) : inner_(std::move(inner)) {}
  const std::vector<Layer>& layers() const override { return inner_->layers(); }
  std::span<float> parameters() override { return inner_->parameters(); }
  std::span<float> gradients() override { return inner_->gradients(); }
  void gradients_into(std::span<float> buffer) override { inner_->gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    const auto loss = inner_->step(iteration, hooks);
    using Task = DeviceSpan::Task;
    const auto span = [](Task task, int begin_ago, int end_ago) {
      return DeviceSpan{LayerId(0), task, Duration(begin_ago), Duration(end_ago)};
    };
    const std::vector<DeviceSpan> spans{span(Task::kCopyIn, 90, 80), span(Task::kWait, 90, 79),
                                        span(Task::kForward, 79, 50), span(Task::kBackward, 50, 9),
                                        span(Task::kCopyOut, 20, 5)};
    hooks.device_done(iteration, spans);
    return loss;
  }
  std::optional<Evaluation> evaluate() override { return inner_->evaluate(); }
  bool times_itself() const override { return true; }

 private:
  std::unique_ptr<Learner> inner_;
};

TEST(Threads, WhatAnAcceleratorTellsStandsForTheTimeBetweenHooks) {
  const Topology topology(2, 1, 0);
  Tally tally(topology);
  auto learners = toy_learners({100, 50}, 2);
  learners[1] = std::make_unique<DeviceLearner>(std::move(learners[1]));
  run_threaded(learners, topology, find_preset("p3")->strategy, {}, 4, &tally);
  EXPECT_EQ(tally.worker(1).compute, Duration(4 * 70));
  EXPECT_EQ(tally.worker(1).waited, Duration(4 * 11));
  EXPECT_EQ(tally.host(HostId(1)).copies, Duration(4 * 25));
  EXPECT_EQ(tally.host(HostId(1)).copies_hidden, Duration(4 * 11));
  EXPECT_EQ(tally.host(HostId(0)).copies, Duration(0));
}

TEST(Threads, TasksAsideBeginInOrder) {
  for (const int threads : {1, 3}) {
    std::vector<std::size_t> begun;
    std::mutex mutex;
    WorkThreads aside(threads);
    std::vector<std::size_t> all;
    for (std::size_t t = 0; t < 100; ++t) {
      aside.start([&, t] {
        const std::lock_guard lock(mutex);
        begun.push_back(t);
      });
      all.push_back(t);
    }
    aside.finish();
    if (threads > 1) {
      std::ranges::sort(begun);
    }
    EXPECT_EQ(begun, all);
  }
}

TEST(Threads, TasksAsideRunAtOnce) {
  WorkThreads aside(3);
  std::latch all(3);
  for (int t = 0; t < 3; ++t) {
    aside.start([&] { all.arrive_and_wait(); });
  }
  aside.finish();
}

TEST(Threads, WhatATaskAsideThrowsComesOut) {
  WorkThreads aside(2);
  aside.start([] {});
  aside.start([] { throw std::runtime_error("no sum"); });
  EXPECT_THROW(aside.finish(), std::runtime_error);
  EXPECT_THROW(aside.rethrow(), std::runtime_error);
}

TEST(Threads, ThreadsAsideThatCannotAllStartEndAgain) {
  int started = 0;
  const auto start = [&](const std::function<void()>& run) {
    if (++started == 3) {
      throw std::runtime_error("no thread");
    }
    return start_thread(run);
  };
  EXPECT_THROW(WorkThreads(4, start), std::runtime_error);
}

}  // namespace
}  // namespace sluice
