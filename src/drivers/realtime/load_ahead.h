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

// What a loader has done for all of its streams.
struct LoadingTally {
  std::int64_t batches = 0;  // that were asked for
  std::int64_t ahead = 0;    // of them, those that were there already
  Duration loading{0};       // time that loading took, on whatever thread
  Duration waited{0};        // time until a batch was there, of those that asked

  LoadingTally& operator+=(const LoadingTally& other);
};

// Loads the next batches of every stream on threads of its own while the last one is in use: as
// many of them as there are threads, but at least two. What nobody has begun when it is asked for
// is loaded by who asks; without threads that is every batch.
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
  // A batch on its way. It belongs to its stream and, while it is loaded, to the thread that does.
  struct Slot;

  void run();
  void close();
  // Without the lock, by whoever has marked the slot as begun.
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
