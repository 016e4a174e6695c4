#include "collectives/factored_runner.h"

#include <utility>

#include "base/check.h"
#include "collectives/choice.h"
#include "partition/about.h"

namespace sluice {
namespace {

constexpr std::size_t kChunksOfMatrix = 3;

ChunkId next(ChunkId chunk) { return ChunkId(chunk.index() + 1); }

}  // namespace

FactoredRunner::FactoredRunner(const Job& job, std::shared_ptr<const ChunkMap> chunks, NodeId self)
    : chunks_(std::move(chunks)),
      self_(self),
      ranks_(static_cast<std::uint32_t>(AggregationGroups(job).size())),
      runner_(job.strategy, collectives_for(job, *chunks_), self, AggregationGroups(job), chunks_),
      begun_(chunks_->size()),
      parts_(chunks_->size()) {}

ChunkId FactoredRunner::left_of(ChunkId chunk) const {
  switch (factor_of(chunk)) {
    case Factor::kLeft:
      return chunk;
    case Factor::kRight:
      return ChunkId(chunk.index() - 1);
    case Factor::kRest:
      return ChunkId(chunk.index() - 2);
    case Factor::kNone:
      break;
  }
  fail_check("the chunk belongs to a matrix");
}

std::vector<FactoredRunner::Done> FactoredRunner::begin(ChunkId chunk, Iteration iteration,
                                                        Effects& effects) {
  if (factor_of(chunk) == Factor::kNone) {
    return runner_.begin(chunk, iteration, effects);
  }
  const ChunkId left = left_of(chunk);
  if (++begun_[left.index()] == kChunksOfMatrix) {
    begun_[left.index()] = 0;
    start(left, WorkKind::kLeftFactor, iteration, effects);
  }
  return {};
}

std::vector<FactoredRunner::Done> FactoredRunner::handle(const Event& event, Effects& effects) {
  if (const auto* finished = std::get_if<Finished>(&event)) {
    const auto& [kind, chunk, iteration] =
        std::tuple(finished->work.kind, finished->work.chunk, finished->work.iteration);
    if (kind == WorkKind::kLeftFactor) {
      sum(chunk, iteration, effects);
      return {};
    }
    if (kind == WorkKind::kRightFactor) {
      sum(next(chunk), iteration, effects);
      return {};
    }
    if (kind == WorkKind::kFromFactors) {
      return all_of(chunk, iteration);
    }
  }
  auto done = runner_.handle(event, effects);
  if (!done) {
    return {};
  }
  if (factor_of(done->chunk) == Factor::kNone) {
    return {*std::move(done)};
  }
  on_part(*done, effects);
  return {};
}

void FactoredRunner::sum(ChunkId chunk, Iteration iteration, Effects& effects) {
  for (const Done& done : runner_.begin(chunk, iteration, effects)) {
    on_part(done, effects);
  }
}

void FactoredRunner::on_part(const Done& done, Effects& effects) {
  std::size_t& parts = parts_[done.chunk.index()];
  if (++parts < segments_of(done.chunk)) {
    return;
  }
  parts = 0;
  const bool left = factor_of(done.chunk) == Factor::kLeft;
  start(left_of(done.chunk), left ? WorkKind::kRightFactor : WorkKind::kFromFactors, done.iteration,
        effects);
}

// Works on the matrix are about its first chunk.
void FactoredRunner::start(ChunkId left, WorkKind kind, Iteration iteration,
                           Effects& effects) const {
  const Range right = (*chunks_)[next(left)].range;
  Work work = work_on(*chunks_, left, kind, self_, iteration);
  work.range.end = (*chunks_)[next(next(left))].range.end;
  work.workers = ranks_;
  if (kind == WorkKind::kLeftFactor) {
    work.output_bytes = (right.end - work.range.begin) * kFloatBytes;
  }
  effects.start(std::move(work));
}

std::vector<FactoredRunner::Done> FactoredRunner::all_of(ChunkId left, Iteration iteration) const {
  std::vector<Done> all;
  for (const ChunkId chunk : {left, next(left), next(next(left))}) {
    for (std::size_t s = 0; s < segments_of(chunk); ++s) {
      all.push_back({chunk, static_cast<std::uint32_t>(s), iteration, {}});
    }
  }
  return all;
}

}  // namespace sluice
