#include "faults/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "faults/gossip_run.h"
#include "nodes/presets.h"
#include "nodes/validate.h"
#include "support/regrouping.h"
#include "support/shuffled_run.h"
#include "support/talkative.h"

namespace sluice::faults {
namespace {

using testing::kIterations;
using testing::kLayers;
using testing::ShuffledRun;
using testing::ShuffledWorld;

const UpdateRule kRule{.rate = {.base = 0.05F}, .momentum = 0.9F, .weight_decay = 0};
constexpr std::uint64_t kMaxEvents = 60;

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return *(values.begin() + random.below(values.size()));
}

void expect(bool holds, std::string_view promise) {
  if (!holds) {
    throw std::runtime_error(std::string(promise));
  }
}

Topology any_topology(Random& random, const Strategy& strategy) {
  const bool apart = strategy.uses_servers() && random.below(4) > 0;
  const bool gossip = strategy.algorithm == Algorithm::kGossip;  // GossipRun has one on each
  return Topology(3 + random.below(3), gossip ? 1 : one_of<std::size_t>(random, {1, 1, 1, 2}),
                  apart ? 1 + random.below(2) : 0);
}

void vary(Job& job, Random& random) {
  Strategy& strategy = job.strategy;
  strategy.slice_params = 16;
  strategy.segment_params = 9;
  strategy.seed = random.below(1000);
  strategy.gossip_probability = 0.7;
  strategy.staleness = 1 + static_cast<Iteration>(random.below(3));
  strategy.period = 2;
  strategy.credit = one_of<Bytes>(random, {1, 64, 150, 1000});
  strategy.peer_credit = one_of<Bytes>(random, {1, 64, 100, 1000});
  job.server_threads = 1 + static_cast<int>(random.below(3));
  job.link.reduce_ns_per_byte = one_of(random, {0.0, 1e6});
  if (random.below(2) == 0) {
    strategy.update = Update::kWorker;
    strategy.update = validate(strategy) ? strategy.update : std::nullopt;
  }
}

bool has_server(const Job& job, HostId host) {
  return job.strategy.uses_servers() &&
         (!job.topology.servers_apart() || host.index() >= job.topology.worker_hosts());
}

// What the documents promise of a lost host.
bool must_end(const Job& job, HostId lost) {
  switch (job.strategy.algorithm) {
    case Algorithm::kAsp:
    case Algorithm::kSsp:
    case Algorithm::kEasgd:
      return has_server(job, lost);
    case Algorithm::kGossip:
    case Algorithm::kAdPsgd:
      return false;
    case Algorithm::kLocal:
      return job.first < job.strategy.cadence.synchronous;
    default:
      return true;
  }
}

// The same of a worker that could come back.
bool may_come_back(const Schedule& schedule) {
  return is_kill(schedule.fault) && !must_end(schedule.job, schedule.victim);
}

HostId donor_of(const Schedule& schedule) {
  return HostId((schedule.victim.index() + 1) % schedule.job.topology.worker_hosts());
}

// Brings the fault about when its time has come.
class Trigger {
 public:
  explicit Trigger(const Schedule& schedule)
      : schedule_(schedule), left_(schedule.events), worker_(watched(schedule)) {}

  void operator()(ShuffledWorld& world) {
    if (has_fired_ || world.iteration(worker_) < schedule_.iteration) {
      return;
    }
    if (left_ > 0 && world.iteration(worker_) < kIterations) {
      --left_;
      return;
    }
    has_fired_ = true;
    switch (schedule_.fault) {
      case Fault::kKill:
        return world.kill(schedule_.victim);
      case Fault::kKillUnheard:
        world.kill(schedule_.victim);
        return world.delay(schedule_.other);
      case Fault::kStop:
        return world.stop(schedule_.victim);
      case Fault::kCut:
        return world.cut(schedule_.victim, schedule_.other);
      case Fault::kDelay:
        return world.delay(schedule_.victim);
    }
  }
  bool has_fired() const { return has_fired_; }

 private:
  static std::size_t watched(const Schedule& schedule) {
    const Topology& topology = schedule.job.topology;
    const bool has_workers = schedule.victim.index() < topology.worker_hosts();
    return has_workers ? schedule.victim.index() * topology.workers_per_host() : 0;
  }

  const Schedule& schedule_;
  std::uint64_t left_;
  std::size_t worker_;
  bool has_fired_ = false;
};

// Notes what may be done once, and finds what was done twice.
class Once {
 public:
  explicit Once(const Strategy& strategy)
      : together_(traits_of(strategy.algorithm).replicas_agree()) {}

  void note(const Work& work) {
    const bool counts = work.kind == WorkKind::kUpdate || work.kind == WorkKind::kSum ||
                        work.kind == WorkKind::kElastic || work.kind == WorkKind::kTakeOver ||
                        (work.kind == WorkKind::kOuterStep && !work.fresh);
    if (!counts) {
      return;
    }
    // Where all gradients go into one update, it has no origin.
    const std::size_t origin = together_ ? 0 : work.origin.index();
    std::uint64_t key = static_cast<std::uint64_t>(work.kind);
    for (const std::size_t part :
         {work.node.index(), origin, work.chunk.index(), std::size_t{work.segment},
          static_cast<std::size_t>(work.iteration)}) {
      key = key * 256 + part;
    }
    done_.push_back(key);
  }
  bool holds() {
    std::ranges::sort(done_);
    return std::ranges::adjacent_find(done_) == done_.end();
  }

 private:
  bool together_;
  std::vector<std::uint64_t> done_;
};

Outcome check_outcome(const Schedule& schedule, const testing::Outages& outages) {
  const auto& errors = outages.errors();
  if (!is_kill(schedule.fault) || !must_end(schedule.job, schedule.victim)) {
    expect(errors.empty(), "nobody ends who can go on");
    return may_come_back(schedule) ? Outcome::kCameBack : Outcome::kWentOn;
  }
  expect(errors.size() + 1 == schedule.job.topology.hosts(), "every other host ends");
  const std::string name = fmt::format("rank {} was lost", schedule.victim.index());
  for (const auto& [host, error] : errors) {
    expect(error.rank == schedule.victim.index() && std::string(error.what()).starts_with(name),
           "the error names the lost rank");
    expect(error.iteration >= 0 && error.iteration <= kIterations, "the error says when");
  }
  return Outcome::kEnded;
}

template <class Run>
bool all_finite(const Run& run, const Schedule& schedule) {
  for (std::size_t w = 0; w < run.learners.size(); ++w) {
    const auto values = run.learners[w]->parameters();
    if (!run.world.outages().is_dead(schedule.job.topology.host_of(NodeId(w))) &&
        !std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
      return false;
    }
  }
  return true;
}

// The bits of a run that nobody disturbed are compared at times: that run takes as long.
void check_replicas(const Schedule& schedule, const ShuffledRun& run) {
  for (std::size_t w = 1; w < run.learners.size(); ++w) {
    expect(run.parameters(w) == run.parameters(0), "replicas have equal bits");
  }
  if (schedule.seed % 8 == 0) {
    ShuffledRun calm(schedule.job, kRule, ~schedule.seed);
    expect(calm.run() && calm.parameters(0) == run.parameters(0),
           "what stood still for a while changes no bit");
  }
}

bool have_equal_global_parameters(ShuffledRun& run) {
  const auto global = [&](std::size_t rank) {
    return run.world.state().workspace(NodeId(rank)).global_parameters();
  };
  for (std::size_t rank = 1; rank < run.learners.size(); ++rank) {
    if (!std::ranges::equal(global(rank), global(0))) {
      return false;
    }
  }
  return true;
}

// The victim joins the others; before that they make sums without it, if they have any.
void come_back(const Schedule& schedule, ShuffledRun& run) {
  const std::string_view promise = "whoever comes back reaches the end with the others";
  if (!schedule.job.strategy.sums_can_be_given_up()) {
    run.revive(schedule.victim, donor_of(schedule), kIterations);
    return expect(run.run_on(2 * kIterations), promise);
  }
  testing::regroup(run, {schedule.victim}, kIterations);
  expect(run.run_on(2 * kIterations), "those that are left reach the end without it");
  testing::rejoin(run, schedule.victim, donor_of(schedule), 2 * kIterations);
  expect(run.run_on(3 * kIterations), promise);
  expect(have_equal_global_parameters(run), "all have the same global parameters");
}

// The job of the schedule may take over from nodes that nothing has disturbed.
std::unique_ptr<ShuffledRun> begin(const Schedule& schedule) {
  Job job = schedule.job;
  const Iteration first = std::exchange(job.first, 0);
  if (first == 0) {
    return std::make_unique<ShuffledRun>(job, kRule, schedule.seed);
  }
  auto run = std::make_unique<ShuffledRun>(job, kRule, schedule.seed, first);
  expect(run->run(), "nodes without a fault reach their end");
  testing::take_over_at(*run, first);
  run->world.run_until(kIterations);
  return run;
}

Outcome run_hosts(const Schedule& schedule) {
  const Job& job = schedule.job;
  const std::unique_ptr<ShuffledRun> begun = begin(schedule);
  ShuffledRun& run = *begun;
  Trigger trigger(schedule);
  Once once(job.strategy);
  run.world.disturb = std::ref(trigger);
  run.world.on_work = [&](const Work& work) { once.note(work); };
  if (job.strategy.algorithm == Algorithm::kSsp) {
    run.world.watch = [&](const ShuffledWorld& /*now*/) {
      // One more backward pass may be in flight.
      expect(run.lead() <= job.strategy.staleness + 1, "nobody gets ahead of the bound");
    };
  }
  expect(run.run(), "whoever can go on reaches the end and keeps nothing back");
  expect(trigger.has_fired(), "the fault has happened");
  if (may_come_back(schedule)) {
    come_back(schedule, run);
  }
  expect(once.holds(), "nothing is applied twice");
  const Outcome outcome = check_outcome(schedule, run.world.outages());
  if (outcome != Outcome::kEnded) {
    expect(all_finite(run, schedule), "nobody has parameters that nobody sent");
    if (traits_of(job.strategy.algorithm).replicas_agree()) {
      check_replicas(schedule, run);
    }
  }
  return outcome;
}

// The same for GoSGD, whose weights only its nodes know.
Outcome run_gossip(const Schedule& schedule) {
  GossipRun run(schedule.job, kRule, kIterations, schedule.seed);
  Trigger trigger(schedule);
  Once once(schedule.job.strategy);
  run.world.disturb = std::ref(trigger);
  run.world.on_work = [&](const Work& work) { once.note(work); };
  run.world.watch = [&](const ShuffledWorld& /*now*/) {
    for (std::size_t c = 0; c < run.chunks->size(); ++c) {
      expect(std::abs(run.weight(ChunkId(c)) - 1) < 1e-12,
             "weights of the living, in flight and lost sum to 1");
    }
  };
  expect(run.world.run(), "whoever can go on reaches the end");
  expect(trigger.has_fired(), "the fault has happened");
  if (may_come_back(schedule)) {
    run.revive(schedule.victim, donor_of(schedule));
    expect(run.world.run_on(2 * kIterations), "whoever comes back reaches the end with the others");
  }
  expect(once.holds(), "nothing is applied twice");
  expect(all_finite(run, schedule), "nobody has parameters that nobody sent");
  return check_outcome(schedule, run.world.outages());
}

// To the victim.
std::string what_happens(const Schedule& schedule) {
  const std::size_t other = schedule.other.index();
  switch (schedule.fault) {
    case Fault::kKill:
      return "is lost";
    case Fault::kKillUnheard:
      return fmt::format("is lost, of which host {} hears last,", other);
    case Fault::kStop:
      return "stops for a while";
    case Fault::kCut:
      return fmt::format("and host {} do not hear of each other for a while", other);
    case Fault::kDelay:
      return "gets no control messages for a while";
  }
  fail_check("there are no others");
}

}  // namespace

bool is_kill(Fault fault) { return fault == Fault::kKill || fault == Fault::kKillUnheard; }

Schedule draw(std::uint64_t seed) {
  Random random(seed, 19);
  const Preset& preset = presets()[seed % presets().size()];
  Schedule schedule;
  schedule.seed = seed;
  schedule.preset = preset.name;
  Job& job = schedule.job;
  job.layers = testing::toy_learners(kLayers, 1).front()->layers();
  job.strategy = testing::talkative(preset.strategy);
  job.topology = any_topology(random, job.strategy);
  vary(job, random);
  if (const Iteration synchronous = job.strategy.cadence.synchronous; synchronous > 0) {
    job.first = one_of<Iteration>(random, {0, synchronous});
  }
  if (job.strategy.exchange == Exchange::kGossip && job.strategy.algorithm == Algorithm::kLocal) {
    job.strategy.cadence.delay = one_of<Iteration>(random, {0, 1, 2});
  }
  schedule.fault = one_of(random, {Fault::kKill, Fault::kKill, Fault::kKillUnheard, Fault::kStop,
                                   Fault::kCut, Fault::kDelay});
  const std::size_t hosts = job.topology.hosts();
  schedule.victim = HostId(random.below(hosts));
  schedule.other = HostId((schedule.victim.index() + 1 + random.below(hosts - 1)) % hosts);
  schedule.iteration = static_cast<Iteration>(random.below(kIterations));
  schedule.events = random.below(kMaxEvents);
  return schedule;
}

std::string describe(const Schedule& schedule) {
  const Topology& topology = schedule.job.topology;
  return fmt::format(
      "{}{} on {} hosts with {} workers each, {} for servers: host {} {} in iteration {}",
      schedule.preset,
      schedule.job.first > 0 ? fmt::format(" from iteration {} on", schedule.job.first) : "",
      topology.worker_hosts(), topology.workers_per_host(),
      topology.hosts() - topology.worker_hosts(), schedule.victim.index(), what_happens(schedule),
      schedule.iteration);
}

Outcome run(const Schedule& schedule) {
  return schedule.job.strategy.algorithm == Algorithm::kGossip ? run_gossip(schedule)
                                                               : run_hosts(schedule);
}

}  // namespace sluice::faults
