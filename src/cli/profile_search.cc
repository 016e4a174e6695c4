#include "cli/profile_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <system_error>

#include "base/program_folder.h"
#include "base/text.h"
#include "cli/specs.h"
#include "torch/torch_learner.h"

namespace sluice::cli {
namespace {

// What is looked for by name.
struct Sought {
  std::string noun;
  std::string ending;
};
// Relative to the program's folder: beside it in a build, or where it is installed.
constexpr std::array kShippedFolders{SLUICE_PROFILE_FOLDERS};
constexpr std::array kStudyFolders{SLUICE_STUDY_FOLDERS};

std::vector<std::filesystem::path> study_folders() {
  std::vector<std::filesystem::path> folders;
  for (const char* folder : kStudyFolders) {
    folders.push_back((program_folder() / folder).lexically_normal());
  }
  return folders;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The names of all files with this ending in these folders, sorted.
std::vector<std::string> file_names(const std::vector<std::filesystem::path>& folders,
                                    const std::string& ending) {
  std::vector<std::string> names;
  for (const std::filesystem::path& folder : folders) {
    std::error_code unreadable;
    std::filesystem::recursive_directory_iterator entries(folder, unreadable);
    for (; !unreadable && entries != std::filesystem::recursive_directory_iterator();
         entries.increment(unreadable)) {
      if (entries->path().extension() == ending) {
        names.push_back(entries->path().lexically_relative(folder).replace_extension().string());
      }
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The names that a user may have meant: a typo away, or the same net on another device.
std::vector<std::string> near_matches(const std::string& name,
                                      const std::vector<std::string>& names) {
  if (const std::string slip = nearest(name, names); !slip.empty()) {
    return {slip};
  }
  const auto net_of = [](const std::string& n) { return n.substr(n.rfind('/') + 1); };
  std::vector<std::string> nets;
  std::ranges::transform(names, std::back_inserter(nets), net_of);
  const std::string net = nearest(net_of(name), nets);
  std::vector<std::string> matches;
  std::ranges::copy_if(names, std::back_inserter(matches),
                       [&](const std::string& n) { return !net.empty() && net_of(n) == net; });
  return matches;
}

std::vector<std::string> existing(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> found;
  for (const std::filesystem::path& folder : folders) {
    std::error_code ignored;
    if (std::filesystem::is_directory(folder, ignored)) {
      found.push_back(folder.string());
    }
  }
  return found;
}

Result<std::string> find_by_name(const Sought& kind, const std::string& name,
                                 const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored) && !std::filesystem::is_directory(name, ignored)) {
    return name;
  }
  const bool has_ending = name.ends_with(kind.ending);
  for (const std::filesystem::path& folder : folders) {
    if (const auto path = folder / (has_ending ? name : name + kind.ending); is_file(path)) {
      return path.string();
    }
  }
  if (has_ending) {
    return name;  // the reader of the file reports what is wrong
  }
  const std::vector<std::string> matches = near_matches(name, file_names(folders, kind.ending));
  const std::vector<std::string> searched = existing(folders);
  const std::string where =
      searched.empty() ? "" : fmt::format("; searched in {}", fmt::join(searched, " and "));
  const std::string hint =
      matches.empty() ? where : fmt::format("; did you mean {}?", fmt::join(matches, ", "));
  return Error(fmt::format("{} \"{}\": there is no such file and no {} of that name{}", kind.noun,
                           name, kind.noun, hint));
}

}  // namespace

std::vector<std::filesystem::path> profile_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* listed = std::getenv("SLUICE_PROFILES")) {
    std::istringstream list(listed);
    for (std::string folder; std::getline(list, folder, ':');) {
      folders.emplace_back(folder);
    }
  }
  for (const char* folder : kShippedFolders) {
    folders.push_back((program_folder() / folder).lexically_normal());
  }
  return folders;
}

Result<std::string> find_profile(const std::string& name,
                                 const std::vector<std::filesystem::path>& folders) {
  return find_by_name({"profile", ".json"}, name, folders);
}

Result<std::string> find_cluster(const std::string& name,
                                 const std::vector<std::filesystem::path>& folders) {
  return find_by_name({"cluster", ".toml"}, name, folders);
}

Result<std::string> find_study(const std::string& name) {
  return find_by_name({"study", ".toml"}, name, study_folders());
}

std::map<std::string, std::string> known_studies() {
  std::map<std::string, std::string> studies;
  for (const std::filesystem::path& folder : study_folders()) {
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
      if (entry.path().extension() == ".toml") {
        studies.try_emplace(entry.path().stem().string(), entry.path().string());
      }
    }
  }
  return studies;
}

namespace {

// The name of the profile that simulate takes; empty if an axis of a sweep may name it.
Result<std::string> profile_of(const Settings& settings) {
  if (!settings.text("profile").empty()) {
    return settings.path("profile");
  }
  if (!settings.text("sweep").empty()) {
    return std::string();
  }
  const bool trains = settings.command() == Command::kCompare || settings.on("train");
  if (!trains || is_model_file(settings.text("model"))) {
    return Error("--profile: is missing: " + settings.help("profile"));
  }
  return "h200/" + settings.text("model");
}

// The name of the cluster; empty if an axis of a sweep names it.
Result<std::string> cluster_of(const Settings& settings) {
  if (!settings.text("cluster").empty()) {
    return settings.path("cluster");
  }
  if ((" " + settings.text("sweep")).find(" cluster=") != std::string::npos) {
    return std::string();
  }
  return Error(fmt::format(
      "--cluster: is missing: it takes a TOML file, such as one with the two lines \"hosts = 4\" "
      "and \"bandwidth_gbps = 10\", or the name of a cluster that comes with Sluice: {}",
      fmt::join(file_names(profile_folders(), ".toml"), ", ")));
}

}  // namespace

Result<void> locate_files(Settings& settings) {
  const auto locate = [&](const std::string& key, const std::string& prefix,
                          const std::string& name, auto& find) -> Result<void> {
    const auto path = find(name, profile_folders());
    if (!path) {
      return path.error();
    }
    settings.rewrite(key, prefix + *path);
    return {};
  };
  const bool compares = settings.command() == Command::kCompare;
  if (settings.command() == Command::kSimulate || (compares && !settings.on("real"))) {
    const auto profile = profile_of(settings);
    const auto cluster = cluster_of(settings);
    if (!profile || !cluster) {
      return cluster ? profile.error() : cluster.error();
    }
    const auto located =
        cluster->empty() ? Result<void>() : locate("cluster", "", *cluster, find_cluster);
    return located && !profile->empty() ? locate("profile", "", *profile, find_profile) : located;
  }
  const bool replays = (settings.command() == Command::kTrain || compares) &&
                       settings.text("model").starts_with(kReplay);
  const bool has_cluster = settings.has("cluster") && settings.command() != Command::kCompare &&
                           !settings.text("cluster").empty();
  if (has_cluster) {
    if (auto located = locate("cluster", "", settings.path("cluster"), find_cluster); !located) {
      return located;
    }
  }
  return replays ? locate("model", kReplay, settings.path("model", kReplay), find_profile)
                 : Result<void>();
}

}  // namespace sluice::cli
