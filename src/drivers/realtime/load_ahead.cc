#include "drivers/realtime/load_ahead.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace sluice {

struct AheadLoader::Slot {
  enum class State : std::uint8_t { kWaiting, kBegun, kDone };

  std::shared_ptr<const BatchSequence> sequence;
  std::int64_t number = 0;
  Batch batch;
  State state = State::kWaiting;  // the loader's mutex guards this and what follows
  std::exception_ptr error;
};

LoadingTally& LoadingTally::operator+=(const LoadingTally& other) {
  batches += other.batches;
  ahead += other.ahead;
  loading += other.loading;
  waited += other.waited;
  return *this;
}

class AheadLoader::Stream final : public BatchStream {
 public:
  Stream(AheadLoader& loader, BatchSequence sequence)
      : loader_(loader), sequence_(std::make_shared<const BatchSequence>(std::move(sequence))) {}
  ~Stream() override {
    const std::lock_guard lock(loader_.mutex_);
    drop_prepared();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Batch& get(std::int64_t number) override {
    const Time begin = loader_.clock_.now();
    std::unique_lock lock(loader_.mutex_);
    if (prepared_.empty() || prepared_.front()->number != number) {
      drop_prepared();
      prepare(number);
    }
    if (current_ != nullptr) {
      spare_ = std::move(current_->batch);
    }
    current_ = std::move(prepared_.front());
    prepared_.pop_front();
    while (!loader_.threads_.empty() && prepared_.size() < loader_.depth_ &&
           number + 1 + static_cast<std::int64_t>(prepared_.size()) < sequence_->size) {
      prepare(number + 1 + static_cast<std::int64_t>(prepared_.size()));
    }
    ++loader_.tally_.batches;
    loader_.tally_.ahead += current_->state == Slot::State::kDone ? 1 : 0;
    await(lock);
    loader_.tally_.waited += loader_.clock_.now() - begin;
    if (current_->error) {
      std::rethrow_exception(current_->error);
    }
    return current_->batch;
  }

 private:
  void prepare(std::int64_t number) {
    auto slot = std::make_shared<Slot>();
    slot->sequence = sequence_;
    slot->number = number;
    slot->batch = std::exchange(spare_, {});
    prepared_.push_back(slot);
    loader_.waiting_.push_back(std::move(slot));
    loader_.wanted_.notify_one();
  }

  void await(std::unique_lock<std::mutex>& lock) {
    if (current_->state == Slot::State::kWaiting) {
      std::erase(loader_.waiting_, current_);
      current_->state = Slot::State::kBegun;
      lock.unlock();
      loader_.load(*current_);
      lock.lock();
    }
    loader_.loaded_.wait(lock, [this] { return current_->state == Slot::State::kDone; });
  }

  void drop_prepared() {
    for (const auto& slot : prepared_) {
      std::erase(loader_.waiting_, slot);
    }
    prepared_.clear();
  }

  AheadLoader& loader_;
  std::shared_ptr<const BatchSequence> sequence_;
  std::shared_ptr<Slot> current_;
  std::deque<std::shared_ptr<Slot>> prepared_;  // consecutive numbers
  Batch spare_;                                 // its memory is reused for the next one
};

AheadLoader::AheadLoader(std::size_t threads, const StartThread& start)
    : depth_(std::max<std::size_t>(threads, 2)) {
  try {
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.push_back(start([this] { run(); }));
    }
  } catch (...) {
    close();  // or the threads that run would never end
    throw;
  }
}

AheadLoader::~AheadLoader() { close(); }

void AheadLoader::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wanted_.notify_all();
}

std::unique_ptr<BatchStream> AheadLoader::open(BatchSequence sequence) {
  return std::make_unique<Stream>(*this, std::move(sequence));
}

LoadingTally AheadLoader::tally() const {
  const std::lock_guard lock(mutex_);
  return tally_;
}

void AheadLoader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (closed_) {
      return;
    }
    const std::shared_ptr<Slot> slot = std::move(waiting_.front());
    waiting_.pop_front();
    slot->state = Slot::State::kBegun;
    lock.unlock();
    load(*slot);
    lock.lock();
  }
}

void AheadLoader::load(Slot& slot) {
  const Time begin = clock_.now();
  std::exception_ptr error;
  try {
    slot.sequence->load(slot.number, slot.batch);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    slot.error = std::move(error);
    slot.state = Slot::State::kDone;
    tally_.loading += clock_.now() - begin;
  }
  loaded_.notify_all();
}

}  // namespace sluice
