#include "compute/workspace.h"

#include <algorithm>
#include <memory>
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

void blend(std::span<float> values, std::span<const float> other, float keep, float add) {
  check(values.size() == other.size(), "a blend has parts of equal length");
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = keep * values[i] + add * other[i];
  }
}

void add(std::span<float> sum, std::span<const float> values) {
  check(sum.size() == values.size(), "a sum has terms of equal length");
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += values[i];
  }
}

}  // namespace

Workspace::Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
                     UpdateRule rule)
    : parameters_(parameters),
      gradients_(std::move(gradients)),
      velocity_(parameters.size()),
      rule_(rule) {}

std::span<float> Workspace::view(const BufferRange& what) const {
  check(what.buffer != Buffer::kNone, "a view is of some buffer");
  return part(what.buffer == Buffer::kParameters ? parameters_ : gradients_.at(what.slot),
              what.range);
}

void Workspace::land(const BufferRange& where, const Payload& payload) const {
  const auto target = view(where);
  check(payload.size() == static_cast<Bytes>(target.size_bytes()),
        "a payload fills the range it lands in");
  std::copy_n(payload.values().data(), target.size(), target.data());
}

Payload Workspace::execute(const Work& work) {
  for (const Payload& source : work.sources) {
    check(source.size() == work.range.size() * kFloatBytes, "a source covers its range");
  }
  switch (work.kind) {
    case WorkKind::kUpdate:
      update(work);
      return {};
    case WorkKind::kReduce:
      add(part(gradients_.at(work.slot), work.range), work.sources.front().values());
      return {};
    case WorkKind::kBlend:
      blend(part(parameters_, work.range), work.sources.front().values(), work.keep, work.add);
      return {};
    case WorkKind::kElastic:
    case WorkKind::kSwap:
      return pull(work);
  }
  fail_check("every kind of work is known");
}

void Workspace::update(const Work& work) {
  std::vector<std::span<const float>> sources;
  sources.reserve(work.sources.size());
  for (const Payload& source : work.sources) {
    sources.push_back(source.values());
  }
  rule_.apply(part(parameters_, work.range), part(velocity_.values(), work.range), sources,
              static_cast<float>(work.contributors), work.iteration);
}

Payload Workspace::pull(const Work& work) const {
  const auto x = part(parameters_, work.range);
  const auto y = work.sources.front().values();
  auto output = std::make_shared<std::vector<float>>(x.size());
  const bool swaps = work.kind == WorkKind::kSwap;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float delta = work.pull * (y[i] - x[i]);
    (*output)[i] = swaps ? delta : y[i] - delta;
    x[i] += delta;
  }
  return Payload::owning(std::move(output));
}

}  // namespace sluice
