#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "drivers/realtime/clock.h"
#include "formats/checkpoint.h"

namespace sluice {

// What one process writes of a checkpoint.
struct CheckpointPart {
  // A host of this process.
  struct Shard {
    std::size_t host = 0;
    std::vector<TensorCopy> tensors;
  };

  CheckpointFolder folder;
  std::string token;  // of the run
  Iteration iteration = 0;
  std::vector<Shard> shards;
  // Of the leader: the manifest without its files, and the hosts that write one.
  std::optional<CheckpointManifest> manifest = {};
  std::vector<std::size_t> hosts = {};
  std::size_t keep = 1;
};

// Writes a checkpoint on a thread of its own. Each process writes the files of its hosts, with a
// digest beside each. The leader's waits for the digests of all hosts, and then publishes the
// checkpoint: the hosts share the folder, so no process has to tell another.
class CheckpointWriter {
 public:
  using OnFailure = std::function<void(const Error& error)>;

  // `on_failure` is called by that thread, as soon as it finds that this process cannot do its
  // part.
  CheckpointWriter(CheckpointPart part, const Clock& clock, OnFailure on_failure);
  // Waits for the end.
  ~CheckpointWriter();

  // Waits until the files of this process are on the disk; the error says why they are not.
  Result<void> await_files();
  // Waits for the end: for long if all processes have their files, else only for those that a lost
  // one may have written.
  Result<void> await_end(bool all_have_files = true);
  // Ends it, and removes what was written aside.
  void give_up();

  Iteration iteration() const { return part_.iteration; }
  // Whether this process led when it was taken, and completes it.
  bool publishes() const { return part_.manifest.has_value(); }
  const std::vector<std::size_t>& hosts() const { return part_.hosts; }  // if it does: of all files
  // After await_end():
  std::uint64_t bytes() const { return bytes_; }  // in all files
  Duration took() const { return took_; }
  // After the end: what was written, for its memory.
  std::vector<CheckpointPart::Shard> take_shards() { return std::move(part_.shards); }

 private:
  void end();
  void run(const std::stop_token& stop);
  Result<void> write_files();
  Result<void> publish(const std::stop_token& stop);
  void note(bool& reached, std::optional<Error> error);

  CheckpointPart part_;
  const Clock& clock_;
  const OnFailure on_failure_;
  std::atomic<bool> given_up_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool has_files_ = false;
  bool has_ended_ = false;
  std::optional<Error> error_;
  std::uint64_t bytes_ = 0;
  Duration took_{0};
  std::jthread thread_;  // ends before all that it uses
};

}  // namespace sluice
