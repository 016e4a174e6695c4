#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// What a program must know to use a model as it was trained: what its samples went through, and
// what its answers mean. All of it may be empty.
struct Preparation {
  // A value v of channel c, as the file has it (pixels: 0 ... 255), became
  // (v - mean[c]) / deviation[c]. One mean and one deviation stand for all channels.
  std::vector<double> mean;
  std::vector<double> deviation;
  // Then the channels were added with these weights to the only one of a grey image.
  std::vector<double> grey_weights;
  std::vector<std::string> classes;  // names by answer

  bool operator==(const Preparation&) const = default;
};

// With the model's name, as a JSON file has it; a name that is not UTF-8 loses letters.
std::string to_json_text(const std::string& model, const std::vector<std::int64_t>& sample_shape,
                         const Preparation& preparation);

}  // namespace sluice
