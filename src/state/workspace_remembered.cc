// What a node remembers between two phases.
#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
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

std::vector<std::span<float>> Workspace::in_common(const Range& range) {
  check(outer_.has_value(), "a worker with outer steps keeps global parameters");
  std::vector<std::span<float>> parts;
  for (const Remembered& one : outer_->remembered()) {
    parts.push_back(one.parts.front());
  }
  for (std::size_t slot = used_later_from_; slot < gradients_.size(); ++slot) {
    parts.push_back(gradients_[slot]);
  }
  for (std::span<float>& values : parts) {
    check(values.size() == parameters_.size(), "what workers have in common is by parameter");
    values = values.subspan(static_cast<std::size_t>(range.begin),
                            static_cast<std::size_t>(range.size()));
  }
  return parts;
}

void Workspace::take_over(const Range& range) {
  Work work;
  work.kind = WorkKind::kTakeOver;
  work.range = range;
  work.keep = 0;
  execute(work);
}

void Workspace::give_up_exchange(const Range& range) {
  if (coder_) {
    coder_->give_up_exchange(range);
  }
}

}  // namespace sluice
