#include "compute/workspace.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace sluice {
namespace {

std::span<float> part(std::span<float> buffer, const Range& range) {
  check(range.begin >= 0 && range.end <= static_cast<std::int64_t>(buffer.size()),
        "a range lies inside its buffer");
  return buffer.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

void add(std::span<float> sum, std::span<const float> values) {
  check(sum.size() == values.size(), "a sum has terms of equal length");
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += values[i];
  }
}

}  // namespace

Workspace::Workspace(std::span<float> parameters, std::span<float> gradients, UpdateRule rule)
    : parameters_(parameters), gradients_(gradients), velocity_(parameters.size()), rule_(rule) {}

std::span<float> Workspace::view(const BufferRange& what) const {
  check(what.buffer != Buffer::kNone, "a view is of some buffer");
  return part(what.buffer == Buffer::kParameters ? parameters_ : gradients_, what.range);
}

void Workspace::land(const BufferRange& where, const Payload& payload) const {
  const auto target = view(where);
  check(payload.size() == static_cast<Bytes>(target.size_bytes()),
        "a payload fills the range it lands in");
  std::copy_n(payload.values().data(), target.size(), target.data());
}

void Workspace::execute(const Work& work) {
  if (work.kind == WorkKind::kReduce) {
    return add(part(gradients_, work.range), work.sources.front().values());
  }
  std::vector<std::span<const float>> sources;
  sources.reserve(work.sources.size());
  for (const Payload& source : work.sources) {
    check(source.size() == work.range.size() * kFloatBytes, "a gradient covers its chunk");
    sources.push_back(source.values());
  }
  rule_.apply(part(parameters_, work.range), part(velocity_.values(), work.range), sources,
              static_cast<float>(work.contributors));
}

}  // namespace sluice
