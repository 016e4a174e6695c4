// Measures the time of an all-reduce by its size: Sluice's own collectives as the MPI driver runs
// them, or MPI_Allreduce.
//
//   mpirun ... sluice_allreduce sluice|mpi|auto|COLLECTIVE BYTES...
//
// `sluice` means auto and all collectives. Rank 0 prints "NAME BYTES MICROSECONDS" for each. Sums
// follow each other without a pause; the time is the median from the start of one to the start of
// the next. Training updates the parameters in between, and that arithmetic is subtracted.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "drivers/processes/launch.h"
#include "learners/idle_learner.h"
#include "nodes/presets.h"
#include "optimizers/update_rule.h"
#include "session/process_group.h"

namespace sluice {
namespace {

constexpr Iteration kWarmUp = 3;

Iteration repetitions(Bytes bytes) { return std::clamp<Iteration>((64 << 20) / bytes, 5, 200); }

// Records when the sums of one worker begin, and how long the updates after them take.
class SumTimes final : public Observer {
 public:
  void computed(NodeId, LayerId, Iteration, Pass pass, Time, Time end) override {
    if (pass == Pass::kBackward) {
      starts_.push_back(end);
    }
  }
  void worked(const Work& work, Time begin, Time end) override {
    if (work.kind == WorkKind::kUpdate) {
      updates_.push_back(end - begin);
    }
  }
  void waited(NodeId, LayerId, Iteration, Time, Time) override {}
  void sent(const Message&, Time, Time) override {}
  void received(const Message&, Time, Time) override {}

  // Only while nothing is in flight.
  std::vector<Duration> after_warm_up() const {
    std::vector<Duration> times;
    for (std::size_t i = kWarmUp; i + 1 < starts_.size(); ++i) {
      times.push_back(starts_[i + 1] - starts_[i] - updates_[i]);
    }
    return times;
  }

 private:
  std::vector<Time> starts_;       // written by the worker's thread
  std::vector<Duration> updates_;  // written by the loop's thread
};

Job summing_job(ProcessGroup& group, const Roster& roster) {
  Job job;
  job.topology = Topology(group.size(), 1, 0, roster.per_machine);
  job.strategy = find_preset("wfbp")->strategy;
  group.tune(job, {});
  return job;
}

std::vector<Duration> sum_with_sluice(ProcessGroup& group, Job job, Bytes bytes) {
  job.layers = lay_out({"sum"}, {bytes / kFloatBytes});
  const Assembly assembly = assemble(std::move(job));
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(std::make_unique<IdleLearner>(assembly.job.layers));
  TrainingState state = state_of(group, assembly, learners, {});
  const Clock clock;
  SumTimes times;
  group.train({.topology = assembly.job.topology,
               .chunks = *assembly.chunks,
               .strategy = assembly.job.strategy,
               .rules = *assembly.rules,
               .hosts = assembly.protocols,
               .state = state,
               .last = kWarmUp + repetitions(bytes) + 1,
               .clock = clock,
               .observer = &times,
               .on_step = {},
               .on_boundary = {}});
  return times.after_warm_up();
}

std::vector<Duration> sum_with_mpi(const ProcessGroup& group, Bytes bytes) {
  const auto params = static_cast<std::size_t>(bytes / kFloatBytes);
  std::vector<float> gradients(params);
  std::vector<float> parameters(params);
  std::vector<float> velocity(params);
  const std::array<std::span<const float>, 1> sources{gradients};
  const UpdateRule rule;
  std::vector<Duration> times;
  const Clock clock;
  for (Iteration i = 1; i <= kWarmUp + repetitions(bytes); ++i) {
    const Time start = clock.now();
    MPI_Allreduce(MPI_IN_PLACE, gradients.data(), static_cast<int>(params), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    if (i > kWarmUp) {
      times.push_back(clock.now() - start);
    }
    rule.apply(parameters, {velocity}, sources, BatchShare::all(group.size()), i);
  }
  return times;
}

void print(const ProcessGroup& group, std::string_view name, Bytes bytes,
           const std::vector<Duration>& times) {
  if (group.is_leader()) {
    fmt::print("{} {} {:.1f}\n", name, bytes, to_us(median_of(times)));
    std::fflush(stdout);
  }
}

// By name; auto leaves the choice to Sluice.
using Sums = std::vector<std::pair<std::string, std::optional<Collective>>>;

Sums all_of_sluice() {
  Sums sums{{"auto", std::nullopt}};
  for (const auto& [collective, name] : kCollectiveNames) {
    sums.emplace_back(name, collective);
  }
  return sums;
}

// The collectives that the argument asks for; none if it is unknown.
Sums sums_of_sluice(const std::string& word) {
  Sums sums = all_of_sluice();
  if (word != "sluice") {
    std::erase_if(sums, [&](const auto& sum) { return sum.first != word; });
  }
  return sums;
}

int measure(ProcessGroup& group, const Roster& roster, const Sums& sums,
            const std::vector<Bytes>& sizes) {
  const Job tuned = summing_job(group, roster);
  for (const Bytes bytes : sizes) {
    for (const auto& [name, collective] : sums) {
      Job job = tuned;
      job.strategy.collective = collective ? collective : tuned.strategy.collective;
      if (check_driver_sums(job.strategy, job.topology)) {
        print(group, name, bytes, sum_with_sluice(group, job, bytes));
      }
    }
    if (sums.empty()) {
      print(group, "mpi", bytes, sum_with_mpi(group, bytes));
    }
  }
  return 0;
}

int fail(const std::string& why) {
  fmt::print(stderr, "sluice_allreduce: {}\n", why);
  return 2;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  std::vector<sluice::Bytes> sizes;
  for (std::size_t i = 1; i < words.size(); ++i) {
    sizes.push_back(std::atoll(words[i].c_str()));
  }
  const auto sums = words.empty() ? sluice::Sums{} : sluice::sums_of_sluice(words[0]);
  if (sizes.empty() || (sums.empty() && words[0] != "mpi") ||
      *std::min_element(sizes.begin(), sizes.end()) < sluice::kFloatBytes) {
    return sluice::fail("expected sluice, mpi, auto or a collective, and numbers of bytes from 4");
  }
  if (!sluice::find_launch()) {
    return sluice::fail("must be started by mpirun");
  }
  const auto group = sluice::join_processes(
      [](const std::string& text) { sluice::fail(text); },
      [](std::size_t /*rank*/, const std::exception& why) { return sluice::fail(why.what()); });
  if (!group) {
    return sluice::fail(group.error().message());
  }
  const auto roster = sluice::check_in(**group, {}, {});
  if (!roster) {
    return sluice::fail(roster.error().message());
  }
  return sluice::measure(**group, *roster, sums, sizes);
}
