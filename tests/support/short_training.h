#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <string>

#include "nodes/presets.h"
#include "support/some_clothes.h"
#include "support/temporary_folder.h"

namespace sluice {

// The command for training LeNet on part of Fashion-MNIST, which it writes to the folder. It is
// short, but long enough to make a plan of merged layers.
inline std::string short_training(const Preset& preset, const TemporaryFolder& folder) {
  const auto data = folder.path() / "clothes";
  write_some_clothes(data);
  return fmt::format(
      "train --data-dir '{}' --batch 8 --kernels native --json --preset {} --iterations {}",
      data.string(), preset.name, preset.strategy.partition == Partition::kMerged ? 12 : 4);
}

// Whether there are models to train: LibTorch is built in.
inline constexpr bool kHasModels = SLUICE_HAS_MODELS != 0;

// For the list of tests.
inline std::ostream& operator<<(std::ostream& out, const Preset& preset) {
  return out << preset.name;
}

// For the name of a test.
inline std::string preset_name(const ::testing::TestParamInfo<Preset>& info) {
  std::string name(info.param.name);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Presets that must give the same bits as on threads.
inline bool is_as_on_threads(const Preset& preset) {
  return preset.name == "p3" || preset.name == "kvstore" || preset.name == "slicing";
}

}  // namespace sluice
