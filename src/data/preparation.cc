#include "data/preparation.h"

#include <nlohmann/json.hpp>

namespace sluice {

std::string to_json_text(const std::string& model, const std::vector<std::int64_t>& sample_shape,
                         const Preparation& preparation) {
  nlohmann::ordered_json json{{"model", model}, {"sample_shape", sample_shape}};
  if (!preparation.mean.empty()) {
    json["normalisation"] = {{"mean", preparation.mean}, {"deviation", preparation.deviation}};
  }
  if (!preparation.grey_weights.empty()) {
    json["normalisation"]["grey_weights"] = preparation.grey_weights;
  }
  if (!preparation.classes.empty()) {
    json["classes"] = preparation.classes;
  }
  if (!preparation.source_words.empty()) {
    json["source_words"] = preparation.source_words;
    json["target_words"] = preparation.target_words;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sluice
