#include "state/workspace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codecs/sparse.h"
#include "state/mixing.h"
#include "state/sparse_sources.h"
#include "state/sums.h"

namespace sluice {
namespace {

std::span<float> part(std::span<float> buffer, const Range& range) {
  check(range.begin >= 0 && range.end <= static_cast<std::int64_t>(buffer.size()),
        "a range lies inside its buffer");
  return buffer.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

std::vector<Range> ranges_of(std::span<const Layer> layers) {
  std::vector<Range> ranges;
  for (const Layer& layer : layers) {
    ranges.push_back(layer.range);
  }
  return ranges;
}

// Where the range is cut: at multiples of what codecs can be cut at, in no more parts than that
// allows.
std::vector<Range> cut(const Range& whole, std::int64_t wanted) {
  constexpr auto kCut = static_cast<std::int64_t>(DenseCodec::kCut);
  const Range units{0, (whole.size() + kCut - 1) / kCut};
  const std::int64_t parts = std::clamp<std::int64_t>(units.size(), 1, wanted);
  std::vector<Range> ranges;
  for (std::int64_t p = 0; p < parts; ++p) {
    const Range unit = part_of(units, parts, p);
    ranges.push_back({std::min(whole.begin + unit.begin * kCut, whole.end),
                      std::min(whole.begin + unit.end * kCut, whole.end)});
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
      used_later_from_(strategy.sums_last()            ? strategy.gradient_slots()
                       : strategy.gradient_slots() > 1 ? 0
                                                       : gradients_.size()),
      rule_(as_applied(rule, strategy)),
      state_(rule_, parameters.size()),
      sparse_(strategy.sparse()),
      gathered_(strategy.gathered()),
      learner_packs_(strategy.learners_pack),
      learner_follows_(learner_packs_ && strategy.exchange == Exchange::kAllReduce),
      pairs_(strategy.exchange == Exchange::kGossip),
      changed_(parameters.size()) {
  if (strategy.factored()) {
    if (!strategy.learners_factor()) {
      factors_.emplace(strategy, layers);
    }
  } else if (strategy.coded()) {
    coder_.emplace(strategy, sender_of(strategy, topology, rule), ranges_of(layers),
                   parameters.size());
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
  WorkInParts doing = begin(work, 1);
  prepare(doing);
  do {
    do_part(doing, 0);
  } while (more(doing));
  return std::move(doing.output);
}

// What a sparse update changes is noted for the whole model. What packing keeps back of a range is
// added to by the gradients of several iterations, if they are in use at a time.
bool Workspace::stands_alone(const Work& work) const {
  const bool keeps = work.feedback || (sparse_ && work.kind == WorkKind::kEncode);
  if (keeps && used_later_from_ == 0) {
    return false;
  }
  switch (work.kind) {
    case WorkKind::kUpdate:
      return !(sparse_ && work.coded);
    case WorkKind::kSum:
    case WorkKind::kReduce:
    case WorkKind::kEncode:
    case WorkKind::kDecode:
    case WorkKind::kRightFactor:
    case WorkKind::kFromFactors:
      return true;
    case WorkKind::kLeftFactor:
      return !learners_factors_;  // else there is nothing to do
    case WorkKind::kOuterGradient:
    case WorkKind::kOuterStep:
    case WorkKind::kTakeOver:
      return !pairs_;
    default:
      return false;
  }
}

bool Workspace::packs_dense(const Work& work) const {
  return !sparse_ && !gathered_ && !is_learners(work) &&
         (work.kind == WorkKind::kEncode || (work.kind == WorkKind::kSum && work.coded));
}

bool Workspace::goes_in_parts(const Work& work) const {
  const bool selects = (sparse_ || gathered_) && (work.coded || work.kind == WorkKind::kEncode);
  return stands_alone(work) && !selects && !is_learners(work) && !FactorCoder::does(work.kind) &&
         (work.kind != WorkKind::kUpdate || rule_.elementwise());
}

WorkInParts Workspace::begin(const Work& work, std::int64_t parts) const {
  for (const Payload& source : work.sources) {
    check(work.coded || work.kind == WorkKind::kOuterStep ||
              source.size() == work.range.size() * kFloatBytes,
          "a source covers its range");
  }
  if (factors_ && FactorCoder::does(work.kind)) {
    return {.work = work, .parts = factors_->cut(work, parts)};
  }
  WorkInParts doing{
      .work = work,
      .parts = goes_in_parts(work) ? cut(work.range, parts) : std::vector{work.range}};
  if (packs_dense(work)) {
    coder_->begin_packing(doing);
  }
  return doing;
}

void Workspace::prepare(WorkInParts& doing) {
  if (doing.work.kind == WorkKind::kEncode && sparse_ && !learner_packs_) {
    coder_->prepare(doing, gradients_.at(doing.work.slot));
  }
}

void Workspace::do_part(WorkInParts& doing, std::size_t part) {
  const Work& work = doing.work;
  const Range& range = doing.parts[part];
  if (FactorCoder::does(work.kind)) {
    return factors_ ? factors_->do_part(doing, part, gradient(work, work.range))
                    : pass_factors(work);
  }
  switch (work.kind) {
    case WorkKind::kUpdate:
      if (work.coded && sparse_) {
        doing.output = update_sparse(work);
        if (learner_follows_) {
          leave_patch(work, doing.output.bytes());
        }
      } else {
        update(work, range);
      }
      return;
    case WorkKind::kSum:
      if (doing.pass == 0) {
        sum_into(sluice::part(parameters_, range),
                 work.begun ? gradient(work, range) : std::span<float>(), Sources(work, coder()),
                 doing.offset(part));
      }
      if (work.coded) {
        coder_->pack(doing, part, sluice::part(parameters_, work.range));
      }
      return;
    case WorkKind::kReduce:
      return reduce_into(gradient(work, range), work, Sources(work, coder()), doing.offset(part));
    case WorkKind::kDecode:
      if (!gathered_ && !learner_packs_) {
        return decode(work, range);
      }
      break;
    case WorkKind::kOuterGradient:
      if (coder_) {
        coder_->begin_exchange(range);
      }
      if (!pairs_) {
        return outer().find_gradient(range, sluice::part(parameters_, range),
                                     gradient(work, range));
      }
      break;
    case WorkKind::kOuterStep:
      return outer_step(work, range);
    case WorkKind::kTakeOver:
      return outer().take_over(range, work.keep, sluice::part(parameters_, range));
    case WorkKind::kEncode:
      if (packs_dense(work)) {
        return coder_->pack(doing, part, gradient(work, work.range));
      }
      break;
    default:
      break;
  }
  doing.output = execute_whole(doing);
}

bool Workspace::more(WorkInParts& doing) const {
  if (factors_ && FactorCoder::does(doing.work.kind)) {
    return FactorCoder::more(doing);
  }
  return packs_dense(doing.work) && coder_->more_packing(doing);
}

Payload Workspace::execute_whole(const WorkInParts& doing) {
  const Work& work = doing.work;
  if (is_learners(work)) {
    return pass_code(work);
  }
  switch (work.kind) {
    case WorkKind::kBlend:
      blend(part(parameters_, work.range), work);
      return {};
    case WorkKind::kElastic:
      return pull(part(parameters_, work.range), work);
    case WorkKind::kSwap:
      return mean_of(work);
    case WorkKind::kSwapped:
      move(part(parameters_, work.range), work);
      return {};
    case WorkKind::kEncode:
      return Payload::owning(sparse_ ? coder_->select(doing, gradients_.at(work.slot), parameters_)
                                     : coder_->take(work, gradient(work, work.range)));
    case WorkKind::kDecode:
      coder_->add_up(work.sources.front().bytes(), gradient(work, work.range));
      return {};
    case WorkKind::kMerge:
      return Payload::owning(sparse_ ? sum_of(work) : joined(work));
    case WorkKind::kPatch:
      patch(work);
      return {};
    case WorkKind::kChanges:
      return changes(work);
    case WorkKind::kNorm:
      note_norm(work);
      return {};
    case WorkKind::kOuterGradient:
      return outer_gradient(work);
    default:
      fail_check("every kind of work is handled");
  }
}

std::span<float> Workspace::gradient(const Work& work, const Range& range) const {
  return part(gradients_.at(work.slot), range);
}

void Workspace::update(const Work& work, const Range& range) {
  const auto offset = static_cast<std::size_t>(range.begin - work.range.begin);
  const auto size = static_cast<std::size_t>(range.size());
  std::vector<std::span<const float>> sources;
  sources.reserve(work.sources.size() + 1);
  if (work.begun) {
    sources.emplace_back(gradient(work, range));
  }
  std::vector<std::vector<float>> unpacked;
  for (const Payload& source : work.sources) {
    if (work.coded) {
      coder_->check_size(source.bytes(), work.range);
      coder_->read(source.bytes(), offset, unpacked.emplace_back(size));
      sources.emplace_back(unpacked.back());
    } else {
      sources.push_back(source.values().subspan(offset, size));
    }
  }
  apply(work, range, sources);
}

void Workspace::apply(const Work& work, const Range& range,
                      std::span<const std::span<const float>> sources) {
  const BatchShare share{work.contributors, work.workers};
  if (layers_.empty()) {
    return rule_.apply(part(parameters_, range), state_.part(range), sources, share, work.iteration,
                       clip_factor_);
  }
  std::int64_t covered = 0;
  for (const Range& layer : layers_) {
    if (layer.begin < range.begin || layer.end > range.end) {
      continue;
    }
    std::vector<std::span<const float>> of_layer;
    for (const auto& source : sources) {
      of_layer.push_back(source.subspan(static_cast<std::size_t>(layer.begin - range.begin),
                                        static_cast<std::size_t>(layer.size())));
    }
    rule_.apply(part(parameters_, layer), state_.part(layer), of_layer, share, work.iteration,
                clip_factor_);
    covered += layer.size();
  }
  check(covered == range.size(), "the range of an update is a number of whole layers");
}

void Workspace::note_norm(const Work& work) {
  const double norm = std::sqrt(sum_of_squares(gradient(work, work.range)));
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

void Workspace::decode(const Work& work, const Range& range) const {
  const std::span<const std::byte> bytes = work.sources.front().bytes();
  coder_->check_size(bytes, work.range);
  coder_->read(bytes, static_cast<std::size_t>(range.begin - work.range.begin),
               gradient(work, range));
}

void Workspace::patch(const Work& work) const {
  const auto parameters = part(parameters_, work.range);
  const SparseView values = parsed(work.sources.front().bytes(), work.range);
  for (std::size_t e = 0; e < values.entries(); ++e) {
    parameters[values.position(e)] = values.value(e);
  }
  if (learner_packs_) {
    leave_patch(work, work.sources.front().bytes());
  }
}

Payload Workspace::changes(const Work& work) {
  const auto positions = changed_.news(work.origin, work.range);
  return Payload::owning(encode_sparse(part(parameters_, work.range), positions));
}

const OuterState& Workspace::outer() const {
  check(outer_.has_value(), "a worker with outer steps keeps global parameters");
  return *outer_;
}

Payload Workspace::outer_gradient(const Work& work) const {
  const std::span<float> found = gradient(work, work.range);
  outer().find_gradient(work.range, part(parameters_, work.range), found);
  if (work.output_bytes == 0) {
    return {};
  }
  std::vector<float> both(found.begin(), found.end());
  const auto first = outer().global().begin() + work.range.begin;
  both.insert(both.end(), first, first + work.range.size());
  return Payload::owning(std::move(both));
}

void Workspace::outer_step(const Work& work, const Range& range) {
  check(outer_.has_value(), "a worker with outer steps keeps global parameters");
  if (work.fresh) {
    outer_->follow(range, part(parameters_, range));
  } else if (pairs_) {
    const auto partner =
        work.sources.empty() ? std::span<const float>() : work.sources.front().values();
    check(partner.empty() || std::ssize(partner) == 2 * range.size(),
          "a partner sends its gradient and its global parameters");
    outer_->step_in_pair(range, gradient(work, range), partner);
  } else {
    outer_->step(range, gradient(work, range), work.workers, work.iteration);
  }
}

}  // namespace sluice
