#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nodes/assembly.h"
#include "report/breakdown.h"
#include "report/counted_traffic.h"
#include "report/run_folder.h"
#include "report/tally.h"
#include "report/tee.h"
#include "report/totals.h"
#include "report/trace.h"
#include "session/specs.h"

namespace sluice {

// Creates the folder that the spec names, or a new one under runs/ whose name begins with `name`,
// and writes config.toml and the files that it refers to.
Result<RunFolder> open_run_folder(const RecordSpec& spec, const std::string& name);

// What distinguishes a run from others with the same settings: the program's version, its command
// line, the machines and the start time. All summaries have it as "run".
nlohmann::ordered_json run_of(const std::string& command_line, std::time_t started,
                              const std::vector<std::string>& hosts);

// The record of a run, real or simulated: its folder, its tally, its breakdown, and its trace if
// the user wants one.
class Record {
 public:
  // Opens a folder; see open_run_folder().
  static Result<Record> open(const RecordSpec& spec, const std::string& name);

  // For a process that only reports to the leader, or if no folder is wanted.
  static Record without_folder(const RecordSpec& spec);

  // In a process that leads from now on. The record of the one before, from its outline(), goes on
  // in the same folder, if that is there, or else in one that this opens.
  Result<void> take_over(const std::string& outline, const RecordSpec& spec,
                         const std::string& name);
  std::string outline() const;

  // Starts observing, or continues with another assembly of the same run. The first call sets the
  // iterations from which the run is steady and from which the time line shows some.
  void watch(const Assembly& assembly, Iteration steady_from = 0, Iteration shown_from = 0);
  // Observes a simulation whose first iterations are in the trace, but do not count.
  void watch_after(Iteration warm_up, const Assembly& assembly);
  Observer* observer() { return tee_.get(); }
  const Tally& tally() const { return *tally_; }
  RunTotals totals(const Topology& topology, const Counters& counters) const {
    return totals_of(topology, *tally_, *breakdown_, counters);
  }
  bool has_folder() const { return folder_.has_value(); }
  RunFolder& folder() { return *folder_; }
  // Removes the folder, if there is one: nothing has been recorded.
  void discard();

  // report() writes what this process has seen of a host as text; adopt() adds it to the record of
  // another process.
  std::string report(HostId host) const;
  void adopt(HostId host, const std::string& report);

  // Writes the summary, with the result of run_of(), the time line, and the trace. `hosts` are the
  // names of the machines of the run.
  Result<void> close(nlohmann::ordered_json summary, const std::vector<std::string>& hosts);

 private:
  void use(RunFolder folder, const RecordSpec& spec);
  // Observes with these, with the trace if the user wants one, and with the time line.
  void observe(const Assembly& assembly, Iteration shown_from, std::vector<Observer*> observers);

  std::optional<RunFolder> folder_;
  std::time_t opened_ = 0;
  std::string command_line_;
  std::string trace_path_;
  bool has_time_line_ = false;
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<Breakdown> breakdown_;
  std::unique_ptr<CountedTraffic> counted_;  // of the tally, if not all counts
  std::unique_ptr<TraceWriter> trace_;
  std::unique_ptr<TraceWriter> time_line_;  // of a few iterations, for the report
  std::unique_ptr<Tee> tee_;
};

// The mechanism part of the summary: messages, bytes, chunks, overtakings, overlap. The assembly is
// the run's last.
nlohmann::ordered_json mechanism_of(const Assembly& assembly, const RunTotals& totals);

// Where the time of an iteration went, as the mean over the workers (Analysis paper, Figure 3),
// over this number of steady iterations.
nlohmann::ordered_json breakdown_of(const RunTotals& totals, const Topology& topology,
                                    Iteration steady);

// How long each host copied to and from accelerators per iteration, and how much of that was hidden
// behind its workers' compute.
nlohmann::ordered_json device_copies_of(const Record& record, const Topology& topology,
                                        Iteration iterations);

}  // namespace sluice
