#include "session/checkpoint_writer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>

namespace sluice {
namespace {

// How often the leader looks for the files of others, and how long if they are said to be there.
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kUntilVisible = std::chrono::seconds(30);
constexpr auto kIfOneIsLost = std::chrono::seconds(1);
constexpr int kLowestPriority = 19;

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointPart part, const Clock& clock, OnFailure on_failure)
    : part_(std::move(part)),
      clock_(clock),
      on_failure_(std::move(on_failure)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void CheckpointWriter::run(const std::stop_token& stop) {
  // Training goes first where cores are few.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowestPriority);
  const Time begin = clock_.now();
  const auto guarded = [](const auto& step) -> Result<void> {
    try {
      return step();
    } catch (const std::exception& failure) {
      return Error(failure.what());
    }
  };
  const auto written = guarded([&] { return write_files(); });
  if (!written) {
    on_failure_(written.error());
  }
  note(has_files_, written ? std::nullopt : std::optional(written.error()));
  Result<void> ended = written;
  if (written && part_.manifest) {
    ended = guarded([&] { return publish(stop); });
    if (!ended && !given_up_) {
      on_failure_(ended.error());
    }
  }
  took_ = clock_.now() - begin;
  note(has_ended_, ended ? std::nullopt : std::optional(ended.error()));
}

void CheckpointWriter::note(bool& reached, std::optional<Error> error) {
  {
    const std::lock_guard lock(mutex_);
    reached = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
}

Result<void> CheckpointWriter::write_files() {
  const std::filesystem::path aside = part_.folder.aside(part_.iteration, part_.token);
  std::error_code failed;
  std::filesystem::create_directories(aside, failed);
  if (failed) {
    return Error(fmt::format("{}: cannot be created: {}", aside.string(), failed.message()));
  }
  for (const CheckpointPart::Shard& shard : part_.shards) {
    std::vector<StoredTensor> tensors;
    for (const TensorCopy& tensor : shard.tensors) {
      tensors.push_back(tensor.view());
    }
    const std::filesystem::path file = aside / host_file_name(shard.host);
    const auto digest = write_safetensors(file, std::move(tensors));
    if (!digest) {
      return digest.error();
    }
    if (auto written = write_digest(file, *digest); !written) {
      return written;
    }
  }
  return {};
}

Result<void> CheckpointWriter::publish(const std::stop_token& stop) {
  const std::filesystem::path aside = part_.folder.aside(part_.iteration, part_.token);
  CheckpointManifest manifest = *part_.manifest;
  for (const std::size_t host : part_.hosts) {
    const std::string name = host_file_name(host);
    auto digest = read_digest(aside / name);
    for (; !digest; digest = read_digest(aside / name)) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, kBetweenLooks, [] { return false; });
      if (stop.stop_requested()) {
        return Error(fmt::format("{} is not to be seen; all hosts must share the folder",
                                 (aside / name).string()));
      }
    }
    bytes_ += digest->bytes;
    manifest.files.push_back({name, *digest});
  }
  if (auto published = part_.folder.publish(manifest, part_.token); !published) {
    return published;
  }
  part_.folder.keep(part_.keep);
  return {};
}

Result<void> CheckpointWriter::await_files() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_files_; });
  return error_ ? Result<void>(*error_) : Result<void>();
}

Result<void> CheckpointWriter::await_end(bool all_have_files) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, all_have_files ? kUntilVisible : kIfOneIsLost,
                      [this] { return has_ended_; });
  }
  end();
  return error_ ? Result<void>(*error_) : Result<void>();
}

void CheckpointWriter::end() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) {
    static_cast<void>(await_end());
  }
}

void CheckpointWriter::give_up() {
  given_up_ = true;
  end();
  std::error_code none;
  std::filesystem::remove_all(part_.folder.aside(part_.iteration, part_.token), none);
}

}  // namespace sluice
