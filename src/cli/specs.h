#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"
#include "formats/cluster.h"
#include "session/process_group.h"
#include "session/specs.h"

// The settings of a command as typed values: no other code uses their keys. Errors name the flag.
namespace sluice::cli {

// A model that is the replay of a profile: this prefix, then the profile.
inline constexpr const char* kReplay = "replay:";

// All settings: they must be the same in every process.
Agreement agreement_of(const Settings& settings);

ServersApart servers_apart(const Settings& settings);
// For the user, who has not asked for it; empty if there is nothing to say.
std::string note_on(const ServersApart& apart, const std::string& preset);

// The folder of a run and its settings, without a trace.
RecordSpec run_folder_spec(const Settings& settings);
RecordSpec record_spec(const Settings& settings);
// The same with copies of the files that some settings name.
struct Copied {
  std::string key;          // of the setting
  std::string name;         // of the copy
  std::string prefix = "";  // of the file's name in the setting
};
Result<RecordSpec> record_spec(const Settings& settings, const std::vector<Copied>& copied);

// The model, and the settings of its data that profile has.
Result<TaskSpec> task_spec(const Settings& settings);
// The same of a command that trains or evaluates, with all of its data.
Result<TaskSpec> model_spec(const Settings& settings, std::size_t loaders);
ProfileSpec profile_spec(const std::string& path, const Settings& settings);

// These refuse flags that have no effect: of train; of simulate --train, with all that a simulated
// cluster leaves to choose; of simulate without it.
// What --batch-shares says. With a cluster, "auto" means the speeds of its hosts.
Result<BatchShares> batch_shares(const Settings& settings, const Cluster* cluster);
Result<TrainSpec> train_spec(const Settings& settings);
Result<TrainSpec> virtual_train_spec(const Settings& settings, const Cluster& cluster);
Result<void> check_plain_simulation(const Settings& settings);

}  // namespace sluice::cli
