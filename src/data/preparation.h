#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// What another program must know to use a trained model: how its samples were prepared, and what
// its classes and words mean. All of it may be empty.
struct Preparation {
  // A value v of channel c in the file (pixels: 0 ... 255) became (v - mean[c]) / deviation[c]. A
  // single mean and deviation apply to all channels.
  std::vector<double> mean;
  std::vector<double> deviation;
  // Then the channels were added with these weights to make one grey channel.
  std::vector<double> grey_weights;
  std::vector<std::string> classes;  // names, by label
  // Words of the two languages, by number. The first kFirstWord are marks, in angle brackets.
  std::vector<std::string> source_words = {};
  std::vector<std::string> target_words = {};

  bool operator==(const Preparation&) const = default;
};

// As the text of a JSON file, with the model's name. Bytes that are not UTF-8 are replaced.
std::string to_json_text(const std::string& model, const std::vector<std::int64_t>& sample_shape,
                         const Preparation& preparation);

}  // namespace sluice
