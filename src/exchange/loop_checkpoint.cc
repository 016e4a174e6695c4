#include "exchange/loop_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>

#include "formats/checkpoint.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// In the manifest: whose checkpoint it is, and of how many processes.
constexpr const char* kWhose = "program";
constexpr const char* kLoop = "a training loop";
constexpr const char* kProcesses = "processes";

std::string fault_of(const Result<void>& result) { return result ? "" : result.error().message(); }

// Throws the first reason that a process has, in all processes.
void throw_first(Participant& participant, const std::string& own, const std::string& what) {
  const std::vector<std::string> all = participant.all_gather(own);
  const auto first = std::ranges::find_if(all, [](const auto& fault) { return !fault.empty(); });
  if (first != all.end()) {
    throw std::runtime_error(fmt::format("{}: rank {}: {}", what, first - all.begin(), *first));
  }
}

std::string run_token(Participant& participant) {
  std::random_device entropy;
  return participant.broadcast_text(fmt::format("{:08x}", entropy()), 0);
}

// This process's file, written aside.
Result<FileDigest> write_part(const fs::path& aside, std::size_t rank,
                              const std::vector<StoredTensor>& tensors) {
  std::error_code failed;
  fs::create_directories(aside, failed);
  if (failed) {
    return Error(fmt::format("{}: cannot be created: {}", aside.string(), failed.message()));
  }
  return write_safetensors(aside / host_file_name(rank), tensors);
}

// Gives all files of a checkpoint, which have these digests, their place.
Result<void> publish_parts(const CheckpointFolder& checkpoints, Iteration iteration,
                           const std::string& token, const std::vector<std::string>& digests,
                           std::size_t keep) {
  CheckpointManifest manifest{.iteration = iteration,
                              .version = SLUICE_VERSION,
                              .settings = {{kWhose, kLoop}},
                              .measured = {{kProcesses, digests.size()}}};
  for (std::size_t r = 0; r < digests.size(); ++r) {
    const Json digest = Json::parse(digests[r]);
    const std::string name = host_file_name(r);
    const fs::path file = checkpoints.aside(iteration, token) / name;
    if (!fs::exists(file)) {
      return Error(
          fmt::format("{} is not to be seen; all processes must share the folder", file.string()));
    }
    manifest.files.push_back({name, {digest.at("bytes"), digest.at("checksum")}});
  }
  if (auto published = checkpoints.publish(manifest, token); !published) {
    return published;
  }
  checkpoints.keep(keep);
  return {};
}

void check_whose(const CheckpointManifest& manifest, const std::string& path,
                 std::size_t processes) {
  const auto whose = manifest.settings.find(kWhose);
  if (whose == manifest.settings.end() || whose->second != kLoop) {
    throw std::runtime_error(path + ": is a checkpoint of `sluice train`, not of a training loop");
  }
  if (const auto before = manifest.measured.value(kProcesses, std::size_t{0});
      before != processes) {
    throw std::runtime_error(
        fmt::format("{}: was saved by {} process{}, and now there {} {}; start as many", path,
                    before, before == 1 ? "" : "es", processes == 1 ? "is" : "are", processes));
  }
}

Result<LoopCheckpoint> read_part(const fs::path& path, const CheckpointManifest& manifest,
                                 std::size_t rank) {
  const std::string name = host_file_name(rank);
  const auto file = std::ranges::find(manifest.files, name, &CheckpointFile::name);
  if (file == manifest.files.end()) {
    return Error(fmt::format("{}: has no {}", path.string(), name));
  }
  auto bytes = read_checked(path, *file);
  if (!bytes) {
    return bytes.error();
  }
  LoopCheckpoint part{.iteration = manifest.iteration,
                      .bytes = std::make_shared<const std::string>(*std::move(bytes))};
  auto tensors = parse_safetensors(std::as_bytes(std::span(*part.bytes)));
  if (!tensors) {
    return tensors.error().within((path / name).string());
  }
  part.tensors = *std::move(tensors);
  return part;
}

}  // namespace

void save_loop_checkpoint(Participant& participant, const fs::path& folder, Iteration iteration,
                          const std::vector<StoredTensor>& tensors, std::size_t keep) {
  const CheckpointFolder checkpoints(folder);
  const std::string what = "checkpoint " + checkpoints.of(iteration).string();
  const bool leads = participant.rank() == 0;
  const std::string token = run_token(participant);
  const fs::path aside = checkpoints.aside(iteration, token);
  const auto discard = [&] {
    std::error_code none;
    fs::remove_all(aside, none);
  };
  if (leads) {
    checkpoints.remove_unfinished();
  }
  throw_first(participant, leads ? fault_of(checkpoints.create()) : "", what);
  const auto digest = write_part(aside, participant.rank(), tensors);
  try {
    throw_first(participant, digest ? "" : digest.error().message(), what);
  } catch (...) {
    discard();
    throw;
  }
  const std::vector<std::string> digests =
      participant.all_gather(Json{{"bytes", digest->bytes}, {"checksum", digest->checksum}}.dump());
  std::string fault;
  if (leads) {
    fault = fault_of(publish_parts(checkpoints, iteration, token, digests, keep));
    if (!fault.empty()) {
      discard();
    }
  }
  throw_first(participant, fault, what);
}

std::optional<LoopCheckpoint> load_loop_checkpoint(
    Participant& participant, const fs::path& folder,
    const std::function<void(const std::string&)>& warn) {
  const bool leads = participant.rank() == 0;
  const auto paths = leads ? checkpoints_in(folder) : std::vector<fs::path>();
  for (std::size_t next = 0;; ++next) {
    Json offered;
    if (next < paths.size()) {
      const auto read = read_manifest(paths[next]);
      offered = {{"path", paths[next].string()},
                 {"manifest", read ? to_text(*read) : ""},
                 {"fault", read ? "" : read.error().message()}};
    }
    offered = Json::parse(participant.broadcast_text(offered.dump(), 0));
    if (offered.is_null()) {
      return std::nullopt;
    }
    std::string fault = offered.at("fault");
    std::optional<LoopCheckpoint> part;
    if (fault.empty()) {
      const std::string path = offered.at("path");
      const auto manifest = manifest_from(offered.at("manifest").get<std::string>());
      check(static_cast<bool>(manifest), "rank 0 has read the manifest");
      check_whose(*manifest, path, participant.size());
      auto own = read_part(path, *manifest, participant.rank());
      if (own) {
        part = *std::move(own);
      } else {
        fault = own.error().message();
      }
    }
    const std::vector<std::string> faults = participant.all_gather(fault);
    const auto first = std::ranges::find_if(faults, [](const auto& one) { return !one.empty(); });
    if (first == faults.end()) {
      return part;
    }
    if (leads) {
      warn("not a sound checkpoint: " + *first);
    }
  }
}

}  // namespace sluice
