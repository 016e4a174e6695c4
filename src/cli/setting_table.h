#pragma once

#include <string>
#include <vector>

#include "cli/setting.h"

// The parts of the table in setting.h, by topic. Only all_settings() reads them.
namespace sluice::cli {

inline constexpr unsigned kTrain = static_cast<unsigned>(Command::kTrain);
inline constexpr unsigned kSimulate = static_cast<unsigned>(Command::kSimulate);
inline constexpr unsigned kCompare = static_cast<unsigned>(Command::kCompare);
inline constexpr unsigned kRuns = kTrain | kSimulate | kCompare;
inline constexpr unsigned kVirtual = kSimulate | kCompare;
inline constexpr unsigned kReal = kTrain | kCompare;
inline constexpr unsigned kShow = static_cast<unsigned>(Command::kShow);
inline constexpr unsigned kLab = static_cast<unsigned>(Command::kLab);
inline constexpr unsigned kDoctor = static_cast<unsigned>(Command::kDoctor);
inline constexpr unsigned kProbe = static_cast<unsigned>(Command::kProbe);
inline constexpr unsigned kProfile = static_cast<unsigned>(Command::kProfile);
inline constexpr unsigned kLaunch = static_cast<unsigned>(Command::kLaunch);
inline constexpr unsigned kEvaluate = static_cast<unsigned>(Command::kEvaluate);
inline constexpr unsigned kStudy = static_cast<unsigned>(Command::kStudy);
inline constexpr unsigned kReport = static_cast<unsigned>(Command::kReport);

inline constexpr std::int64_t kMaxCount = 1'000'000'000'000;

// The names of a table such as kCodecNames.
template <class NameTable>
std::vector<std::string> words_of(const NameTable& names) {
  std::vector<std::string> words;
  for (const auto& [value, name] : names) {
    words.emplace_back(name);
  }
  return words;
}

// The same, preceded by a word that stands for none of them.
template <class NameTable>
std::vector<std::string> words_or(const std::string& other, const NameTable& names) {
  std::vector<std::string> words = words_of(names);
  words.insert(words.begin(), other);
  return words;
}

std::vector<Setting> model_settings();
std::vector<Setting> data_settings();
std::vector<Setting> optimiser_settings();
std::vector<Setting> cluster_settings();
std::vector<Setting> launch_settings();
std::vector<Setting> fault_settings();
std::vector<Setting> estimate_settings();
std::vector<Setting> output_settings();

}  // namespace sluice::cli
