// What a node remembers between two phases.
#include <algorithm>
#include <iterator>
#include <string>

#include "state/workspace.h"

namespace sluice {

std::vector<Remembered> Workspace::remembered() {
  std::vector<Remembered> all{{"parameters", {parameters_}}, {"clip_factor", {{&clip_factor_, 1}}}};
  for (const auto& [name, values] : state_.buffers()) {
    all.push_back({"optimizer." + std::string(name), {values.values()}});
  }
  const auto add = [&](std::vector<Remembered> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  if (coder_) {
    add(coder_->remembered());
  }
  if (factors_) {
    add(factors_->remembered());
  }
  if (outer_) {
    add(outer_->remembered());
  }
  for (std::size_t slot = used_later_from_; slot < gradients_.size(); ++slot) {
    all.push_back({"sums." + std::to_string(slot), {gradients_[slot]}});
  }
  return all;
}

}  // namespace sluice
