#include "session/training_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "formats/checkpoint.h"

namespace sluice {
namespace {

// A folder that cannot be created should be reported before a long training, not after it.
Result<void> make_save_folder(const std::string& folder) {
  std::error_code failed;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, failed);
  }
  return failed ? Result<void>(Error(fmt::format("save: {}: the folder cannot be created: {}",
                                                 folder, failed.message())))
                : Result<void>();
}

std::string name_of(const TrainSpec& spec, const std::string& workload) {
  return spec.strategy.preset + "-" + workload;
}

}  // namespace

Result<Record> open_record(const TrainSpec& spec, const std::string& workload,
                           const ProcessGroup& group) {
  if (!group.is_leader()) {
    return Record::without_folder(spec.record);
  }
  if (const auto made = make_save_folder(spec.save); !made) {
    return made.error();
  }
  if (const std::string& folder = spec.checkpoint.folder; !folder.empty()) {
    if (const auto made = CheckpointFolder(folder).create(); !made) {
      return made.error().within("checkpoint");
    }
  }
  return Record::open(spec.record, name_of(spec, workload));
}

Result<void> take_over_record(Record& record, const std::string& outline, const TrainSpec& spec,
                              const std::string& workload) {
  if (auto made = make_save_folder(spec.save); !made) {
    return made;
  }
  return record.take_over(outline, spec.record, name_of(spec, workload));
}

}  // namespace sluice
