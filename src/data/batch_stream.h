#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "data/dataset.h"
#include "data/sharding.h"

namespace sluice {

// Batches by number. To load one is a pure function, which any thread may call.
struct BatchSequence {
  std::function<void(std::int64_t number, Batch& batch)> load;
  std::int64_t size = std::numeric_limits<std::int64_t>::max();
};

// What a worker trains on, by iteration.
BatchSequence batches_of(std::shared_ptr<const Samples> samples, const Sharding& sharding,
                         std::size_t rank);
// All samples once, in their order; the last batch may be smaller.
BatchSequence batches_in_order(std::shared_ptr<const Samples> samples, std::int64_t batch);

// A sequence as one thread goes through it.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // Stays as it is until the next call. Any number may be asked for; one more than the last is
  // what a stream can be prepared for. Throws what loading throws.
  virtual Batch& get(std::int64_t number) = 0;
};

// May be called by several threads, and outlives its streams.
class Loader {
 public:
  virtual ~Loader() = default;

  virtual std::unique_ptr<BatchStream> open(BatchSequence sequence) = 0;
};

// Loads a batch when it is asked for, unless it is the same again.
class DirectLoader final : public Loader {
 public:
  std::unique_ptr<BatchStream> open(BatchSequence sequence) override;
};

}  // namespace sluice
