#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nodes/assembly.h"
#include "session/checkpoint_writer.h"
#include "session/log.h"
#include "session/process_group.h"
#include "session/specs.h"
#include "state/training_state.h"

namespace sluice {

// By this a run asks itself to end the phase, because a checkpoint is due.
inline constexpr int kCheckpointSignal = SIGALRM;

// By which a checkpoint is named: where its workers are, in the mean.
Iteration mean_of(const std::vector<Iteration>& at);

// The checkpoints that a run writes. Between two phases the state of all nodes is copied; training
// goes on while a thread writes it. At most one is being written: if the next is due before, it
// waits. One that cannot be written is reported as soon as a process finds that out, and training
// goes on.
class Checkpoints {
 public:
  // `facts` go into the manifest, with the settings of the spec. Collective.
  Checkpoints(ProcessGroup& group, const CheckpointSpec& spec, Json facts, const Clock& clock,
              const Log& log);

  // The next iteration after `at` before which one is due; none: later than any, or by time.
  std::optional<Iteration> next_after(Iteration at) const;
  // Whether one is due by time; the leader decides for all. From any thread.
  bool is_due() const;

  // These are collective:
  // Writes one, of workers that are at these iterations; unless the last one had their mean.
  void take(const Assembly& assembly, TrainingState& state, const std::vector<Iteration>& at);
  // Waits for the last one.
  void finish();
  // The same before others join the run, who know of none.
  void regroup();

  // After finish(): how many, how long, where.
  nlohmann::ordered_json summary() const;

 private:
  // Sees to it that the one before is written, or that somebody has said why it is not.
  void settle();
  // In the leader: what has become of it.
  nlohmann::json end_of(const std::vector<std::string>& said);
  std::string path_of(Iteration iteration) const;
  CheckpointPart part_of(const Assembly& assembly, TrainingState& state,
                         const std::vector<Iteration>& at);

  ProcessGroup& group_;
  CheckpointSpec spec_;
  Json facts_;
  const Clock& clock_;
  const Log& log_;
  std::string token_;
  std::unique_ptr<CheckpointWriter> writing_;
  std::vector<CheckpointPart::Shard> earlier_;  // lend their memory to the next ones
  std::optional<Iteration> last_;               // that was copied
  std::atomic<Time> copied_at_{Time(0)};
  int written_ = 0;
  int failed_ = 0;
  std::uint64_t bytes_ = 0;
  Duration writing_took_{0};
  Duration held_{0};
};

}  // namespace sluice
