#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "data/dataset.h"

namespace sluice {

// Licences: English text that every Debian has.
inline constexpr const char* kLicenceFolder = "/usr/share/common-licenses";

// A character is a byte, so every text has the same ones.
inline constexpr std::int64_t kCharacters = 256;

// Windows of a text, for a network that predicts each character from those before it in its window:
//
//   sample   t0 t1 ... t(n-1)      labels: t1 t2 ... tn
struct CharacterSet final : Samples {
  std::int64_t length = 1;  // of a window
  std::string text;
  // Anywhere in the text, drawn anew in each epoch; else one after the other.
  bool drawn = false;
  std::int64_t count = 0;  // of the first windows, or of those that are drawn; 0: as many as fit

  SampleForm form() const override { return {{1, length}, kCharacters, kCharacters}; }
  std::int64_t size() const override;
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;
};

struct CharacterSplit {
  CharacterSet train;
  CharacterSet test;
};

// Reads the files of a folder, in the order of their names, as one text; neither links nor the
// files of folders in it. The last tenth is for the test. Errors name the file or the folder.
Result<CharacterSplit> read_characters(const std::string& folder, std::int64_t length);

}  // namespace sluice
