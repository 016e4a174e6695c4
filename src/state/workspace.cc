#include "state/workspace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codecs/sparse.h"
#include "model/aggregation_groups.h"

namespace sluice {
namespace {

// Long enough to amortise the outer loop, short enough for a sum to stay in the L1 cache.
constexpr std::size_t kBlock = 1024;

std::span<float> part(std::span<float> buffer, const Range& range) {
  check(range.begin >= 0 && range.end <= static_cast<std::int64_t>(buffer.size()),
        "a range lies inside its buffer");
  return buffer.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

void blend(std::span<float> values, std::span<const float> other, float keep, float add) {
  check(values.size() == other.size(), "both parts of a blend have the same length");
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = keep * values[i] + add * other[i];
  }
}

void add(std::span<float> sum, std::span<const float> values) {
  check(sum.size() == values.size(), "all terms of a sum have the same length");
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += values[i];
  }
}

// Checks what came over the network before anything is used as an index.
SparseView parsed(std::span<const std::byte> bytes, const Range& range) {
  const auto view = SparseView::parse(bytes, range.size());
  if (!view) {
    fail_check(view.error().message());
  }
  return *view;
}

Payload mean_of(const Work& work) {
  check(work.sources.size() == 2, "a swap is between two");
  const auto x = work.sources[0].values();
  const auto y = work.sources[1].values();
  std::vector<float> mean(x.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = 0.5F * (x[i] + y[i]);
  }
  return Payload::owning(std::move(mean));
}

std::vector<std::byte> sum_of(const Work& work) {
  std::vector<SparseView> parts;
  for (const Payload& source : work.sources) {
    parts.push_back(parsed(source.bytes(), work.range));
  }
  return sum_sparse(parts);
}

std::vector<std::uint32_t> positions_of(const SparseView& sparse) {
  std::vector<std::uint32_t> positions;
  for (std::size_t e = 0; e < sparse.entries(); ++e) {
    positions.push_back(sparse.position(e));
  }
  return positions;
}

std::vector<Range> ranges_of(std::span<const Layer> layers) {
  std::vector<Range> ranges;
  for (const Layer& layer : layers) {
    ranges.push_back(layer.range);
  }
  return ranges;
}

// With a sparse codec the senders have applied weight decay, and momentum if they correct it.
UpdateRule as_applied(UpdateRule rule, const Strategy& strategy) {
  if (strategy.sparse()) {
    rule.weight_decay = 0;
    rule.momentum = strategy.dgc.momentum_correction ? 0.0F : rule.momentum;
  }
  return rule;
}

}  // namespace

Workspace::Workspace(std::span<float> parameters, std::vector<std::span<float>> gradients,
                     const UpdateRule& rule, const Strategy& strategy, const Topology& topology,
                     std::span<const Layer> layers)
    : parameters_(parameters),
      gradients_(std::move(gradients)),
      rule_(as_applied(rule, strategy)),
      state_(rule_, parameters.size()),
      sparse_(strategy.sparse()),
      changed_(parameters.size()) {
  if (strategy.coded()) {
    const AggregationGroups groups(strategy, topology);
    coder_.emplace(strategy,
                   DeepGradient::Sender{.senders = groups.size(),
                                        .group = groups.group(),
                                        .momentum = rule.momentum,
                                        .weight_decay = rule.weight_decay},
                   ranges_of(layers), parameters.size());
  }
  if (rule.traits().whole_layers) {
    layers_ = ranges_of(layers);
  }
}

std::span<float> Workspace::view(const BufferRange& what) const {
  check(what.buffer != Buffer::kNone, "a view needs a buffer");
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
    check(work.coded || source.size() == work.range.size() * kFloatBytes,
          "a source covers its range");
  }
  switch (work.kind) {
    case WorkKind::kUpdate:
      return work.coded && sparse_ ? update_sparse(work) : update(work);
    case WorkKind::kSum:
      sum(work);
      return work.coded ? Payload::owning(coder_->encode(work, parameters_, {})) : Payload{};
    case WorkKind::kReduce:
      reduce(work);
      return {};
    case WorkKind::kBlend:
      blend(part(parameters_, work.range), work.sources.front().values(), work.keep, work.add);
      return {};
    case WorkKind::kElastic:
      return pull(work);
    case WorkKind::kSwap:
      return mean_of(work);
    case WorkKind::kSwapped:
      move(work);
      return {};
    case WorkKind::kEncode:
      return encode(work);
    case WorkKind::kDecode:
      coder_->decode(work.sources.front().bytes(), gradient(work));
      return {};
    case WorkKind::kMerge:
      return Payload::owning(sum_of(work));
    case WorkKind::kPatch:
      patch(work);
      return {};
    case WorkKind::kChanges:
      return changes(work);
    case WorkKind::kNorm:
      note_norm(work);
      return {};
    case WorkKind::kOuterGradient:
      outer().find_gradient(work.range, part(parameters_, work.range), gradient(work));
      return {};
    case WorkKind::kOuterStep:
      outer_step(work);
      return {};
    case WorkKind::kTakeOver:
      outer().take_over(work.range, work.keep, part(parameters_, work.range));
      return {};
  }
  fail_check("every kind of work is handled");
}

std::span<float> Workspace::gradient(const Work& work) const {
  return part(gradients_.at(work.slot), work.range);
}

Payload Workspace::update(const Work& work) {
  std::vector<std::vector<float>> decoded;
  std::vector<std::span<const float>> sources;
  sources.reserve(work.sources.size() + 1);
  if (work.begun) {
    sources.emplace_back(gradient(work));
  }
  for (const Payload& source : work.sources) {
    if (work.coded) {
      decoded.emplace_back(static_cast<std::size_t>(work.range.size()));
      coder_->decode(source.bytes(), decoded.back());
      sources.emplace_back(decoded.back());
    } else {
      sources.push_back(source.values());
    }
  }
  apply(work, sources);
  return {};
}

void Workspace::apply(const Work& work, std::span<const std::span<const float>> sources) {
  const BatchShare share{work.contributors, work.workers};
  if (layers_.empty()) {
    return rule_.apply(part(parameters_, work.range), state_.part(work.range), sources, share,
                       work.iteration, clip_factor_);
  }
  std::int64_t covered = 0;
  for (const Range& layer : layers_) {
    if (layer.begin < work.range.begin || layer.end > work.range.end) {
      continue;
    }
    std::vector<std::span<const float>> of_layer;
    for (const auto& source : sources) {
      of_layer.push_back(source.subspan(static_cast<std::size_t>(layer.begin - work.range.begin),
                                        static_cast<std::size_t>(layer.size())));
    }
    rule_.apply(part(parameters_, layer), state_.part(layer), of_layer, share, work.iteration,
                clip_factor_);
    covered += layer.size();
  }
  check(covered == work.range.size(), "the range of an update is a number of whole layers");
}

void Workspace::note_norm(const Work& work) {
  const double norm = std::sqrt(sum_of_squares(gradient(work)));
  clip_factor_ = rule_.clip_factor(norm / static_cast<double>(work.workers));
}

Payload Workspace::update_sparse(const Work& work) {
  const auto parameters = part(parameters_, work.range);
  const std::vector<std::byte> bytes = sum_of(work);
  const SparseView sum = parsed(bytes, work.range);
  rule_.apply_sparse(parameters, state_.part(work.range), sum, {work.contributors, work.workers},
                     work.iteration);
  changed_.note(work.range, sum);
  return Payload::owning(encode_sparse(parameters, positions_of(sum)));
}

void Workspace::sum(const Work& work) const {
  check(!work.sources.empty(), "a sum needs a source");
  const std::span<float> total = part(parameters_, work.range);
  const std::span sources(work.sources);
  if (work.coded) {
    if (work.begun) {
      std::ranges::copy(gradient(work), total.begin());
    } else {
      coder_->decode(sources.front().bytes(), total);
    }
    return reduce_coded({}, sources.subspan(work.begun ? 0 : 1), total);
  }
  const std::span<const float> first = work.begun ? gradient(work) : sources.front().values();
  for (std::size_t begin = 0; begin < total.size(); begin += kBlock) {
    const auto block = [&](auto values) {
      return values.subspan(begin, std::min(kBlock, total.size() - begin));
    };
    std::ranges::copy(block(first), block(total).begin());
    for (const Payload& source : sources.subspan(work.begun ? 0 : 1)) {
      add(block(total), block(source.values()));
    }
  }
}

void Workspace::reduce(const Work& work) const {
  check(work.before <= work.sources.size(), "the gradients have their place among the sources");
  check(!work.fresh || (work.before == 0 && !work.sources.empty()),
        "a fresh sum begins with its first source");
  const std::span<float> own = gradient(work);
  const std::span sources(work.sources);
  const auto before = sources.first(work.before);
  const auto after = sources.subspan(work.fresh ? 1 : work.before);
  if (work.coded) {
    if (work.fresh) {
      coder_->decode(sources.front().bytes(), own);
    }
    reduce_coded(before, after, own);
    return;
  }
  for (std::size_t begin = 0; begin < own.size(); begin += kBlock) {
    const auto block = [&](auto values) {
      return values.subspan(begin, std::min(kBlock, own.size() - begin));
    };
    const std::span<float> sum = block(own);
    if (work.fresh) {
      std::ranges::copy(block(sources.front().values()), sum.begin());
    }
    // Addition commutes: what comes before the gradients is summed on its own, then added to them.
    if (!before.empty()) {
      std::array<float, kBlock> room;
      const std::span<float> first(room.data(), sum.size());
      std::ranges::copy(block(before.front().values()), first.begin());
      for (const Payload& source : before.subspan(1)) {
        add(first, block(source.values()));
      }
      add(sum, first);
    }
    for (const Payload& source : after) {
      add(sum, block(source.values()));
    }
  }
}

void Workspace::reduce_coded(std::span<const Payload> before, std::span<const Payload> after,
                             std::span<float> own) const {
  if (!before.empty()) {
    std::vector<float> first(own.size());
    coder_->decode(before.front().bytes(), first);
    for (const Payload& source : before.subspan(1)) {
      coder_->add(source.bytes(), first);
    }
    add(own, first);
  }
  for (const Payload& source : after) {
    coder_->add(source.bytes(), own);
  }
}

Payload Workspace::encode(const Work& work) {
  return Payload::owning(coder_->encode(work, gradients_.at(work.slot), parameters_));
}

void Workspace::patch(const Work& work) const {
  const auto parameters = part(parameters_, work.range);
  const SparseView values = parsed(work.sources.front().bytes(), work.range);
  for (std::size_t e = 0; e < values.entries(); ++e) {
    parameters[values.position(e)] = values.value(e);
  }
}

Payload Workspace::changes(const Work& work) {
  const auto positions = changed_.news(work.origin, work.range);
  return Payload::owning(encode_sparse(part(parameters_, work.range), positions));
}

Payload Workspace::pull(const Work& work) const {
  const auto x = part(parameters_, work.range);
  const auto y = work.sources.front().values();
  std::vector<float> output(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float delta = work.pull * (y[i] - x[i]);
    output[i] = y[i] - delta;
    x[i] += delta;
  }
  return Payload::owning(std::move(output));
}

const OuterState& Workspace::outer() const {
  check(outer_.has_value(), "a worker with outer steps keeps global parameters");
  return *outer_;
}

void Workspace::outer_step(const Work& work) {
  check(outer_.has_value(), "a worker with outer steps keeps global parameters");
  if (work.fresh) {
    outer_->follow(work.range, part(parameters_, work.range));
  } else {
    outer_->step(work.range, gradient(work), work.workers, work.iteration);
  }
}

void Workspace::move(const Work& work) const {
  check(work.sources.size() == 2, "a move goes from one source to another");
  const auto values = part(parameters_, work.range);
  const auto to = work.sources[0].values();
  const auto from = work.sources[1].values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += to[i] - from[i];
  }
}

}  // namespace sluice
