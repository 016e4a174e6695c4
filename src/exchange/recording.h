#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drivers/realtime/clock.h"
#include "nodes/assembly.h"
#include "session/journal.h"
#include "session/process_group.h"
#include "session/record.h"

namespace sluice {

// What a program wants to keep of an exchange, in the words of `sluice train`.
struct RecordingSpec {
  std::string run = {};    // a folder, new or empty; "auto": a new one under runs/
  std::string trace = {};  // a file for a Chrome trace; "auto": in the folder; "": none
  std::string name = "loop";
  std::int64_t batch = 0;  // samples per step of each process; 0: not known

  bool is_wanted() const { return !run.empty() || !trace.empty(); }
};

// The record of an exchange: the folder and the trace that `sluice train` leaves. A step goes from
// one end_step() of the exchange to the next. The forward pass of a layer has its update in it.
class Recording {
 public:
  // Collective. The error is the same in all processes.
  static Result<std::shared_ptr<Recording>> open(ProcessGroup& group, const RecordingSpec& spec,
                                                 const std::string& preset, const Job& job);

  // The exchange begins. `hosts` are the names of the machines, by rank.
  void begin(std::shared_ptr<const Assembly> assembly, const Clock& clock,
             const NetworkFacts& network, const std::vector<std::string>& hosts);
  Observer& observer() { return *record_.observer(); }

  // Calls of the thread that takes the steps. `at` is the step.
  void enter(LayerId layer, Iteration at);
  void waited(LayerId layer, Iteration at, Time begin);
  void forward_done(Iteration at);
  void gradient_ready(LayerId layer, Iteration at);

  // In the leader: some process has taken a step.
  void on_step(const StepReport& step) { journal_->on_step(step); }

  // Collective, when the exchange is over in all processes: the leader writes the record. The error
  // is the leader's.
  Result<void> close(ProcessGroup& group);

 private:
  Recording(Record record, const RecordingSpec& spec, std::string preset, const Job& job);

  void end_forward(Iteration at, Time end);

  Record record_;
  std::string preset_;
  std::string name_;
  Extent extent_;
  Log log_;  // silent
  NodeId worker_{};
  std::vector<std::string> hosts_;
  std::shared_ptr<const Assembly> assembly_;
  NetworkFacts network_;
  Clock clock_;
  std::optional<Journal> journal_;  // in the leader
  std::optional<LayerId> in_forward_;
  Time since_{0};  // when the current span began
};

}  // namespace sluice
