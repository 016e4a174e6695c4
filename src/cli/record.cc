#include "cli/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "algorithms/allreduce_worker.h"
#include "report/names.h"

namespace sluice::cli {
namespace {

std::vector<std::string> names_of(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const Layer& layer : layers) {
    names.push_back(layer.name);
  }
  return names;
}

// runs/NAME-TIME, with a number behind it if that is taken.
std::string new_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  const std::string base = fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
  std::string path = base;
  for (int i = 2; std::filesystem::exists(path); ++i) {
    path = fmt::format("{}-{}", base, i);
  }
  return path;
}

}  // namespace

Result<RunFolder> open_run_folder(const Settings& settings, const std::string& name) {
  const std::string named = settings.text("run");
  auto folder = RunFolder::create(named.empty() ? new_folder(name) : named);
  if (folder) {
    if (const auto written = folder->write_config(settings.to_toml()); !written) {
      return written.error();
    }
  }
  return folder;
}

Result<Record> Record::open(const Settings& settings, const std::string& name) {
  auto folder = open_run_folder(settings, name);
  if (!folder) {
    return folder.error();
  }
  Record record;
  record.folder_ = *std::move(folder);
  record.trace_path_ = settings.text("trace");
  if (record.trace_path_ == "auto") {
    record.trace_path_ = record.folder_->file("trace.json");
  }
  return record;
}

void Record::watch(const Assembly& assembly) {
  const Job& job = assembly.job;
  tally_ = std::make_unique<Tally>(job.topology);
  std::vector<Observer*> observers{tally_.get()};
  if (!trace_path_.empty()) {
    trace_ = std::make_unique<TraceWriter>(job.topology, names_of(job.layers),
                                           chunk_names(job.layers, *assembly.chunks));
    observers.push_back(trace_.get());
  }
  tee_ = std::make_unique<Tee>(std::move(observers));
}

Result<void> Record::close(const nlohmann::ordered_json& summary) {
  if (auto written = folder_->write_summary(summary); !written) {
    return written;
  }
  return trace_ ? trace_->write(trace_path_) : Result<void>{};
}

nlohmann::ordered_json mechanism_of(const Assembly& assembly, const Tally& tally) {
  const Counters counters = assembly.counters();
  nlohmann::ordered_json by_kind;
  const auto traffic = tally.sent_by_kind();
  for (std::size_t k = 0; k < traffic.size(); ++k) {
    if (traffic[k].messages > 0) {
      by_kind[std::string(name_of(static_cast<MessageKind>(k)))] = {
          {"messages", traffic[k].messages}, {"bytes", traffic[k].bytes}};
    }
  }
  auto collectives = nlohmann::ordered_json::object();
  if (assembly.job.strategy.exchange == Exchange::kAllReduce && !assembly.job.native_allreduce) {
    for (const Collective collective : collectives_for(assembly.job, *assembly.chunks)) {
      auto& chunks = collectives[std::string(name_of(kCollectiveNames, collective))];
      chunks = chunks.is_null() ? 1 : chunks.get<int>() + 1;
    }
  }
  return {{"messages", counters.messages},
          {"bytes", counters.payload_bytes},
          {"local_messages", counters.local_messages},
          {"chunks_a_model", assembly.chunks->size()},
          {"chunks_sent", counters.chunks},
          {"bytes_before_packing", counters.before_packing},
          {"bytes_after_packing", counters.after_packing},
          {"gradients_summed_locally", counters.local_sums},
          {"updates", counters.updates},
          {"overtakings_egress", counters.egress_overtakings},
          {"overtakings_inbox", counters.inbox_overtakings},
          {"chunks_by_collective", collectives},
          {"hidden_share", tally.hidden_share()},
          {"sent_by_kind", by_kind}};
}

}  // namespace sluice::cli
