#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "formats/cluster.h"
#include "nodes/assembly.h"
#include "report/breakdown.h"
#include "report/run_folder.h"
#include "report/table.h"
#include "report/tally.h"
#include "report/tee.h"
#include "report/trace.h"

namespace sluice {

// Makes the folder that the user named with --run, or a new one under runs/ that begins with
// `name`, and writes config.toml.
Result<RunFolder> open_run_folder(const cli::Settings& settings, const std::string& name);

// What is kept of a run, real or simulated: its folder, its tally, its breakdown, its trace if the
// user wants one.
class Record {
 public:
  // In a folder as by open_run_folder().
  static Result<Record> open(const cli::Settings& settings, const std::string& name);

  // Of a process that only reports to the one that keeps the folder.
  static Record without_folder(const cli::Settings& settings);

  // Begins to watch, or goes on with another assembly of the same run.
  void watch(const Assembly& assembly);
  Observer* observer() { return tee_.get(); }
  const Tally& tally() const { return *tally_; }
  const Breakdown& breakdown() const { return *breakdown_; }
  RunFolder& folder() { return *folder_; }

  // What this process has seen of a host, as text; and the same into the record of another process.
  std::string report(HostId host) const;
  void adopt(HostId host, const std::string& report);

  // Writes the summary and the trace.
  Result<void> close(const nlohmann::ordered_json& summary);

 private:
  std::optional<RunFolder> folder_;
  std::string trace_path_;
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<Breakdown> breakdown_;
  std::unique_ptr<TraceWriter> trace_;
  std::unique_ptr<Tee> tee_;
};

// What the mechanisms did, for the summary: messages, bytes, chunks, overtakings, overlap.
// The counters are those of the whole run, the assembly its last.
nlohmann::ordered_json mechanism_of(const Assembly& assembly, const Counters& counters,
                                    const Tally& tally);

// Where the time of an iteration went, as the mean over the workers (Analysis paper, Figure 3).
nlohmann::ordered_json breakdown_of(const Record& record, const Topology& topology,
                                    Iteration iterations);

// How long each host copied to and from accelerators in an iteration, and how much of that its
// workers' compute hid.
nlohmann::ordered_json device_copies_of(const Record& record, const Topology& topology,
                                        Iteration iterations);

// The plan of a run with partition merged, and what came of it.
struct Merging {
  std::vector<std::string> groups;  // in the order of sending
  AllReduceCost cost;
  Duration predicted{0};
  Duration iteration{0};  // as it was
  int replans = 0;
};

// The groups of the assembly's layers, by name.
std::vector<std::string> groups_of(const Assembly& assembly);
nlohmann::ordered_json to_json(const Merging& merging);
// Shows the same in a table of two columns.
void add_rows(const nlohmann::ordered_json& merging, Table& table);

}  // namespace sluice
