#include "session/data_store.h"

#include <algorithm>

namespace sluice {
namespace {

// The samples of some data depend on the model, and those that are made up also on the seed.
bool have_same_data(const TaskSpec& one, const TaskSpec& other) {
  const DataKind kind = one.data.kind;
  const bool of_model = kind == DataKind::kImages || kind == DataKind::kText ||
                        kind == DataKind::kCharacters || kind == DataKind::kSynthetic;
  return one.data == other.data && (!of_model || one.model == other.model) &&
         (kind != DataKind::kSynthetic || one.seed == other.seed);
}

}  // namespace

Result<TaskData> DataStore::read(const TaskSpec& spec, const Log& log) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      read_, [&](const auto& known) { return have_same_data(known.first, spec); });
  if (found != read_.end()) {
    return found->second;
  }
  auto data = read_task_data(spec, log);
  if (data) {
    TaskSpec key = spec;
    key.shared_data.reset();  // a store that kept itself would stay forever
    read_.emplace_back(std::move(key), *data);
  }
  return data;
}

}  // namespace sluice
