#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "data/dataset.h"
#include "data/sharding.h"

namespace sluice {

// Batches by number. Loading one is a pure function and may be called from any thread.
struct BatchSequence {
  std::function<void(std::int64_t number, Batch& batch)> load;
  std::int64_t size = std::numeric_limits<std::int64_t>::max();
};

// A worker's training batches, by iteration.
BatchSequence batches_of(std::shared_ptr<const Samples> samples, const Sharding& sharding,
                         std::size_t rank);
// All samples once, in order; the last batch may be smaller.
BatchSequence batches_in_order(std::shared_ptr<const Samples> samples, std::int64_t batch);

// A sequence as read by one thread.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  // The batch stays valid until the next call. Any number is allowed; a stream may prepare for the
  // next one in sequence. Throws what loading throws.
  virtual Batch& get(std::int64_t number) = 0;
};

// Thread-safe. Must outlive its streams.
class Loader {
 public:
  virtual ~Loader() = default;

  virtual std::unique_ptr<BatchStream> open(BatchSequence sequence) = 0;
};

// Loads a batch when it is asked for, unless it is the same as the last one.
class DirectLoader final : public Loader {
 public:
  std::unique_ptr<BatchStream> open(BatchSequence sequence) override;
};

}  // namespace sluice
