#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/settings.h"

namespace sluice::cli {

// Where profiles are looked for by name: the folders in the environment variable SLUICE_PROFILES,
// separated by colons, then those that come with Sluice.
std::vector<std::filesystem::path> profile_folders();

// The file that a user means: a path as it is, or the name of a profile in one of the folders, such
// as p4000/resnet50. An error suggests similar names.
Result<std::string> find_profile(const std::string& name,
                                 const std::vector<std::filesystem::path>& folders);

// The same for a cluster file, such as clusters/mg-wfbp.
Result<std::string> find_cluster(const std::string& name,
                                 const std::vector<std::filesystem::path>& folders);

// The same for the configuration file of a study, such as p3-scaling, in the folders that come with
// Sluice, and all of them: by name, sorted.
Result<std::string> find_study(const std::string& name);
std::map<std::string, std::string> known_studies();

// Replaces the names of profiles and clusters in the settings by the paths of their files.
Result<void> locate_files(Settings& settings);

}  // namespace sluice::cli
