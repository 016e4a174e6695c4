#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.h"
#include "data/batch_stream.h"
#include "drivers/realtime/clock.h"
#include "drivers/realtime/start_thread.h"

namespace sluice {

// The work of a loader for all of its streams.
struct LoadingTally {
  std::int64_t batches = 0;  // requested
  std::int64_t ahead = 0;    // of these, loaded before the request
  Duration loading{0};       // time spent loading, on any thread
  Duration waited{0};        // time that requests waited for a batch

  LoadingTally& operator+=(const LoadingTally& other);
};

// Loads the next batches of every stream on its own threads while the current batch is in use: as
// many batches as there are threads, but at least two. If no thread has begun a batch when it is
// requested, the caller loads it; without threads that is every batch.
class AheadLoader final : public Loader {
 public:
  explicit AheadLoader(std::size_t threads, const StartThread& start = start_thread);
  ~AheadLoader() override;
  AheadLoader(const AheadLoader&) = delete;
  AheadLoader& operator=(const AheadLoader&) = delete;

  std::unique_ptr<BatchStream> open(BatchSequence sequence) override;

  LoadingTally tally() const;

 private:
  class Stream;
  // A batch being loaded. It belongs to its stream and, while it is loaded, to the loading thread.
  struct Slot;

  void run();
  void close();
  // Called without the lock, by the thread that has marked the slot as begun.
  void load(Slot& slot);

  std::size_t depth_;
  Clock clock_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;  // a slot waits, or all is over
  std::condition_variable loaded_;  // a slot is done
  std::deque<std::shared_ptr<Slot>> waiting_;
  LoadingTally tally_;
  bool closed_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace sluice
