#include "data/batch_stream.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace sluice {
namespace {

class DirectStream final : public BatchStream {
 public:
  explicit DirectStream(BatchSequence sequence) : sequence_(std::move(sequence)) {}

  Batch& get(std::int64_t number) override {
    if (loaded_ != number) {
      loaded_.reset();
      sequence_.load(number, batch_);
      loaded_ = number;
    }
    return batch_;
  }

 private:
  BatchSequence sequence_;
  Batch batch_;
  std::optional<std::int64_t> loaded_;
};

}  // namespace

BatchSequence batches_of(std::shared_ptr<const Samples> samples, const Sharding& sharding,
                         std::size_t rank) {
  return {[samples = std::move(samples), sharding, rank](std::int64_t iteration, Batch& batch) {
    samples->load(sharding.batch_of(rank, iteration), sharding.augmentation_seed_of(iteration),
                  batch);
  }};
}

BatchSequence batches_in_order(std::shared_ptr<const Samples> samples, std::int64_t batch) {
  const std::int64_t size = samples->size();
  return {
      [samples = std::move(samples), batch, size](std::int64_t number, Batch& into) {
        const std::int64_t begin = number * batch;
        std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch, size - begin)));
        std::iota(indices.begin(), indices.end(), begin);
        samples->load(indices, 0, into);
      },
      (size + batch - 1) / batch};
}

std::unique_ptr<BatchStream> DirectLoader::open(BatchSequence sequence) {
  return std::make_unique<DirectStream>(std::move(sequence));
}

}  // namespace sluice
