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

constexpr const char* kEnding = ".json";
// Relative to the program's folder: beside it in a build, or where it is installed.
constexpr std::array kShippedFolders{SLUICE_PROFILE_FOLDERS};

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The names of all profiles in these folders, sorted.
std::vector<std::string> profile_names(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> names;
  for (const std::filesystem::path& folder : folders) {
    std::error_code unreadable;
    std::filesystem::recursive_directory_iterator entries(folder, unreadable);
    for (; !unreadable && entries != std::filesystem::recursive_directory_iterator();
         entries.increment(unreadable)) {
      if (entries->path().extension() == kEnding) {
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
  if (is_file(name)) {
    return name;
  }
  const bool has_ending = name.ends_with(kEnding);
  for (const std::filesystem::path& folder : folders) {
    if (const auto path = folder / (has_ending ? name : name + kEnding); is_file(path)) {
      return path.string();
    }
  }
  if (has_ending) {
    return name;  // the reader of the file reports what is wrong
  }
  const std::vector<std::string> matches = near_matches(name, profile_names(folders));
  const std::string hint =
      matches.empty()
          ? fmt::format("; profiles with names are in {}", fmt::join(existing(folders), " and "))
          : fmt::format("; did you mean {}?", fmt::join(matches, ", "));
  return Error(fmt::format("profile \"{}\": there is no such file and no profile of that name{}",
                           name, hint));
}

Result<void> locate_profiles(Settings& settings) {
  const bool simulates = settings.command() == Command::kSimulate;
  const std::string key = simulates ? "profile" : "model";
  const bool replays =
      settings.command() == Command::kTrain && settings.text(key).starts_with(kReplay);
  if (!simulates && !replays) {
    return {};
  }
  const std::string prefix = replays ? kReplay : "";
  std::string name = settings.text(key).substr(prefix.size());
  if (simulates && name.empty() && !settings.text("sweep").empty()) {
    return {};  // an axis may name them
  }
  if (simulates && name.empty()) {
    if (!settings.on("train") || is_model_file(settings.text("model"))) {
      return Error("--profile: is missing: " + settings.help("profile"));
    }
    name = "h200/" + settings.text("model");
  }
  const auto path = find_profile(name, profile_folders());
  if (!path) {
    return path.error();
  }
  settings.rewrite(key, prefix + *path);
  return {};
}

}  // namespace sluice::cli
