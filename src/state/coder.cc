#include "state/coder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codecs/error_feedback.h"
#include "model/aggregation_groups.h"

namespace sluice {
namespace {

std::span<float> values_of(const WorkInParts& doing, std::size_t part, std::span<float> values) {
  return values.subspan(doing.offset(part), static_cast<std::size_t>(doing.parts[part].size()));
}

}  // namespace

DeepGradientSender sender_of(const Strategy& strategy, const Topology& topology,
                             const UpdateRule& rule) {
  const AggregationGroups groups(strategy, topology);
  return {.senders = groups.size(),
          .group = groups.group(),
          .momentum = rule.momentum,
          .weight_decay = rule.weight_decay};
}

Coder::Coder(const Strategy& strategy, const DeepGradientSender& sender, std::vector<Range> layers,
             std::size_t parameters)
    : dense_(strategy.travels_whole() ? nullptr : make_dense_codec(strategy.codec)),
      deep_(strategy.dgc, sender, std::move(layers)),
      blocks_(strategy.top_k),
      residual_(parameters),
      before_(strategy.error_feedback && strategy.sums_can_be_given_up() ? parameters : 0),
      decay_(static_cast<float>(strategy.feedback_decay)) {}

std::span<float> Coder::part(const ZeroedBuffer& buffer, const Range& range) {
  return buffer.values().subspan(static_cast<std::size_t>(range.begin),
                                 static_cast<std::size_t>(range.size()));
}

void Coder::begin_packing(WorkInParts& doing) const {
  const auto size = static_cast<std::size_t>(dense_->encoded_size(doing.work.range.size()));
  const std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
  doing.packed = {bytes.get(), size};
  doing.output = Payload(std::span<const std::byte>(doing.packed), bytes);
  doing.largest.resize(doing.parts.size());
}

void Coder::pack(WorkInParts& doing, std::size_t part, std::span<float> values) {
  const std::span<float> own = values_of(doing, part, values);
  const std::size_t first = doing.offset(part);
  const Work& work = doing.work;
  const ErrorFeedback corrected(
      *dense_, work.feedback ? residual_of(work.range) : std::span<float>(), decay_);
  const auto& codec = work.feedback ? static_cast<const DenseCodec&>(corrected) : *dense_;
  if (doing.pass == 0 && codec.has_range()) {
    doing.largest[part] = codec.look_at(own, first);
    return;
  }
  in_blocks(own.size(), [&](std::size_t begin, std::size_t end) {
    const std::span<float> block = own.subspan(begin, end - begin);
    if (!codec.has_range()) {
      codec.look_at(block, first + begin);
    }
    codec.write_part(block, first + begin, doing.packed);
    if (work.exact) {
      codec.read_part(doing.packed, first + begin, block);
    }
  });
}

bool Coder::more_packing(WorkInParts& doing) const {
  if (doing.pass > 0 || !dense_->has_range()) {
    return false;
  }
  dense_->begin(std::ranges::max(doing.largest), doing.packed);
  ++doing.pass;
  return true;
}

void Coder::prepare(WorkInParts& doing, std::span<const float> gradients) {
  doing.clips = deep_.clip_factors(gradients, doing.work.range, doing.work.iteration);
}

std::vector<std::byte> Coder::select(const WorkInParts& doing, std::span<const float> gradients,
                                     std::span<const float> parameters) {
  return deep_.encode(gradients, parameters, doing.work.range, doing.work.iteration, doing.clips);
}

std::vector<std::byte> Coder::take(const Work& work, std::span<const float> values) {
  if (!work.feedback) {
    std::vector<float> copy(values.begin(), values.end());
    return blocks_.take(copy);
  }
  const std::span<float> residual = residual_of(work.range);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    residual[i] = decay_ * residual[i] + values[i];
  }
  return blocks_.take(residual);
}

void Coder::add_up(std::span<const std::byte> codes, std::span<float> sum) const {
  const auto size = static_cast<std::size_t>(blocks_.size(std::ssize(sum)));
  check(size > 0 && codes.size() % size == 0, "codes of one range have the same length");
  std::ranges::fill(sum, 0.0F);
  for (std::size_t begin = 0; begin < codes.size(); begin += size) {
    blocks_.add(codes.subspan(begin, size), sum);
  }
}

void Coder::begin_exchange(const Range& range) {
  if (!before_.values().empty()) {
    std::ranges::copy(residual_of(range), part(before_, range).begin());
  }
}

void Coder::give_up_exchange(const Range& range) {
  if (!before_.values().empty()) {
    std::ranges::copy(part(before_, range), residual_of(range).begin());
  }
}

void Coder::check_size(std::span<const std::byte> bytes, const Range& range) const {
  dense_->check_sizes(static_cast<std::size_t>(range.size()), bytes.size());
}

void Coder::read(std::span<const std::byte> bytes, std::size_t first,
                 std::span<float> values) const {
  dense_->read_part(bytes, first, values);
}

void Coder::add(std::span<const std::byte> bytes, std::size_t first, std::span<float> sum) const {
  dense_->add_part(bytes, first, 1, sum);
}

}  // namespace sluice
