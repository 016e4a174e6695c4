#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "exchange/participant.h"
#include "formats/safetensors.h"

// Checkpoints of a program with a training loop of its own, in the folders and files of `train`:
// each process has a file, and rank 0 writes the manifest. What is in a file is the program's.
namespace sluice {

// What this process has saved.
struct LoopCheckpoint {
  Iteration iteration = 0;
  std::shared_ptr<const std::string> bytes = {};  // of its file
  std::vector<StoredTensor> tensors = {};         // views of them
};

// Collective. Returns when it is on the disk; the last `keep` stay. If a process cannot write its
// part, throws in all of them.
void save_loop_checkpoint(Participant& participant, const std::filesystem::path& folder,
                          Iteration iteration, const std::vector<StoredTensor>& tensors,
                          std::size_t keep);

// Collective. The newest that is sound in all processes, of a folder of checkpoints or of the one
// that it names; none if there is none. Tells `warn` of rank 0 about those that are not. Throws in
// all processes if it is not of a loop with as many processes.
std::optional<LoopCheckpoint> load_loop_checkpoint(
    Participant& participant, const std::filesystem::path& folder,
    const std::function<void(const std::string&)>& warn);

}  // namespace sluice
