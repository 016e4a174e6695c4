#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>

#include "algorithms/presets.h"
#include "support/command.h"

namespace sluice {

// The command for a training that is over soon, but not before there is a plan of merged layers.
inline std::string short_training(const Preset& preset) {
  return fmt::format(
      "train --data synthetic --batch 8 --onednn off --json --preset {} --iterations {}",
      preset.name, preset.strategy.partition == Partition::kMerged ? 12 : 4);
}

// What is needed for it.
inline bool has_models(const TemporaryFolder& folder) {
  const Outcome models = run_command("'" SLUICE_BINARY "' models --json", folder);
  return !nlohmann::json::parse(models.out).empty();
}

// In the name of a test.
inline std::string preset_name(const ::testing::TestParamInfo<Preset>& info) {
  std::string name(info.param.name);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Presets whose bits are promised to be those of threads.
inline bool is_as_on_threads(const Preset& preset) {
  return preset.name == "p3" || preset.name == "kvstore" || preset.name == "slicing";
}

}  // namespace sluice
