#include "session/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "collectives/choice.h"
#include "collectives/packings.h"
#include "report/names.h"

namespace sluice {
namespace {

// A time line has so many iterations of so many hosts.
constexpr int kShown = 4;

// "Linux 6.1.0 on x86_64, 16 cores".
std::string system_text() {
  utsname names{};
  const bool known = uname(&names) == 0;
  return fmt::format(
      "{}{} cores",
      known ? fmt::format("{} {} on {}, ", names.sysname, names.release, names.machine) : "",
      std::thread::hardware_concurrency());
}

std::vector<std::string> names_of(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const Layer& layer : layers) {
    names.push_back(layer.name);
  }
  return names;
}

// runs/NAME-TIME, followed by a number if that exists.
std::string new_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  const std::string base = fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
  std::string path = base;
  for (int i = 2; std::filesystem::exists(path); ++i) {
    path = fmt::format("{}-{}", base, i);
  }
  return path;
}

// Workers that do not send gradients update themselves, whether there are servers or not.
std::string_view updates_by(const Strategy& strategy) {
  const bool own = traits_of(strategy.algorithm).sends != Sends::kGradients;
  return strategy.uses_servers() && !strategy.servers_sum() && !own ? "server" : "worker";
}

nlohmann::ordered_json cadence_of(const Strategy& strategy) {
  const Cadence& cadence = strategy.cadence;
  nlohmann::ordered_json summary{{"every", cadence.every},
                                 {"synchronous_first", cadence.synchronous},
                                 {"outer", name_of(kOuterNames, cadence.outer)},
                                 {"outer_rate", cadence.rate},
                                 {"fragments", cadence.fragments},
                                 {"outer_delay", cadence.delay},
                                 {"outer_mix", cadence.mix}};
  if (cadence.outer == Outer::kNesterov) {
    summary["outer_momentum"] = cadence.momentum;
  }
  if (strategy.exchange == Exchange::kGossip) {
    summary["outer_pull"] = cadence.pull;
  }
  return summary;
}

// How many matrices travel as factors, and how many parameters do, of all.
nlohmann::ordered_json powersgd_of(const Assembly& assembly) {
  const Strategy& strategy = assembly.job.strategy;
  std::int64_t matrices = 0;
  std::int64_t params = 0;
  for (const Layer& layer : assembly.job.layers) {
    if (strategy.factors(layer.matrix)) {
      ++matrices;
      params += layer.matrix.range().size();
    }
  }
  return {{"rank", strategy.power_rank},
          {"matrices", matrices},
          {"factored_parameters", params},
          {"dense_parameters", total_params(assembly.job.layers) - params}};
}

}  // namespace

Result<RunFolder> open_run_folder(const RecordSpec& spec, const std::string& name) {
  auto folder = RunFolder::create(spec.folder.empty() ? new_folder(name) : spec.folder);
  if (!folder) {
    return folder;
  }
  for (const KeptFile& file : spec.kept) {
    if (const auto written = write_file(folder->file(file.name), file.text); !written) {
      return written.error();
    }
  }
  if (const auto written = folder->write_config(spec.config); !written) {
    return written.error();
  }
  return folder;
}

nlohmann::ordered_json run_of(const std::string& command_line, std::time_t started,
                              const std::vector<std::string>& hosts) {
  return {{"version", SLUICE_VERSION},
          {"command_line", command_line},
          {"hosts", hosts},
          {"system", system_text()},
          {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(started))}};
}

Result<Record> Record::open(const RecordSpec& spec, const std::string& name) {
  auto folder = open_run_folder(spec, name);
  if (!folder) {
    return folder.error();
  }
  Record record = without_folder(spec);
  record.opened_ = std::time(nullptr);
  record.use(*std::move(folder), spec);
  return record;
}

void Record::use(RunFolder folder, const RecordSpec& spec) {
  folder_ = std::move(folder);
  command_line_ = spec.command_line;
  if (trace_path_ == "auto") {
    trace_path_ = folder_->file("trace.json");
  }
}

std::string Record::outline() const {
  return nlohmann::json{{"folder", folder_ ? folder_->path().string() : ""}, {"opened", opened_}}
      .dump();
}

Result<void> Record::take_over(const std::string& outline, const RecordSpec& spec,
                               const std::string& name) {
  const auto of_run = nlohmann::json::parse(outline);
  opened_ = of_run.at("opened");
  auto folder = RunFolder::find(of_run.at("folder").get<std::string>());
  if (!folder) {
    auto own = open_run_folder(spec, name);
    if (!own) {
      return own.error();
    }
    folder = *std::move(own);
  }
  use(*std::move(folder), spec);
  return {};
}

Record Record::without_folder(const RecordSpec& spec) {
  Record record;
  record.trace_path_ = spec.trace;
  record.has_time_line_ = true;
  return record;
}

std::string Record::report(HostId host) const {
  const WaitShares waits = breakdown_->shares();
  return nlohmann::json{{"tally", tally_->report(host)},
                        {"waits",
                         {waits.local_aggregation.count(), waits.aggregation.count(),
                          waits.communication.count(), waits.others.count()}},
                        {"trace", trace_ ? trace_->report(host) : ""},
                        {"time_line", time_line_ ? time_line_->report(host) : ""}}
      .dump();
}

void Record::adopt(HostId host, const std::string& report) {
  const auto json = nlohmann::json::parse(report);
  tally_->adopt(host, json.at("tally"));
  const auto wait = [&](std::size_t i) {
    return Duration(json.at("waits").at(i).get<std::int64_t>());
  };
  breakdown_->adopt({wait(0), wait(1), wait(2), wait(3)});
  if (trace_) {
    trace_->adopt(host, json.at("trace"));
  }
  if (time_line_) {
    time_line_->adopt(host, json.at("time_line"));
  }
}

void Record::discard() {
  if (folder_) {
    std::error_code none;
    std::filesystem::remove_all(folder_->path(), none);
  }
}

void Record::watch(const Assembly& assembly, Iteration steady_from, Iteration shown_from) {
  const Job& job = assembly.job;
  if (tally_ != nullptr) {
    const ChunkNames names = chunk_names(job.layers, *assembly.chunks);
    for (TraceWriter* trace : {trace_.get(), time_line_.get()}) {
      if (trace != nullptr) {
        trace->rename_chunks(job.first, names);
      }
    }
    return;
  }
  tally_ = std::make_unique<Tally>(job.topology, steady_from);
  breakdown_ = std::make_unique<Breakdown>(job.topology, urgency(steady_from, 0));
  observe(assembly, shown_from, {tally_.get(), breakdown_.get()});
}

// An iteration begins with the first layer's forward pass: a wait for that belongs to the one
// before, and so does all that a later iteration does not wait for.
void Record::watch_after(Iteration warm_up, const Assembly& assembly) {
  const Topology& topology = assembly.job.topology;
  tally_ = std::make_unique<Tally>(topology, warm_up);
  counted_ = std::make_unique<CountedTraffic>(*tally_, warm_up + 1);
  breakdown_ = std::make_unique<Breakdown>(topology, urgency(warm_up, 1));
  observe(assembly, warm_up - 1, {counted_.get(), breakdown_.get()});
}

void Record::observe(const Assembly& assembly, Iteration shown_from,
                     std::vector<Observer*> observers) {
  const Job& job = assembly.job;
  const ChunkNames names = chunk_names(job.layers, *assembly.chunks);
  if (!trace_path_.empty()) {
    trace_ = std::make_unique<TraceWriter>(job.topology, names_of(job.layers), names);
    observers.push_back(trace_.get());
  }
  if (has_time_line_) {
    const TraceWindow window{.first = shown_from, .last = shown_from + kShown, .hosts = kShown};
    time_line_ = std::make_unique<TraceWriter>(job.topology, names_of(job.layers), names, window);
    observers.push_back(time_line_.get());
  }
  tee_ = std::make_unique<Tee>(std::move(observers));
}

Result<void> Record::close(nlohmann::ordered_json summary, const std::vector<std::string>& hosts) {
  if (folder_) {
    summary["run"] = run_of(command_line_, opened_, hosts);
    if (auto written = folder_->write_summary(summary); !written) {
      return written;
    }
    if (time_line_) {
      const std::string text = to_json(time_line_->time_line()).dump() + "\n";
      if (auto written = write_file(folder_->file("timeline.json"), text); !written) {
        return written;
      }
    }
  }
  return trace_ ? trace_->write(trace_path_) : Result<void>{};
}

nlohmann::ordered_json breakdown_of(const RunTotals& totals, const Topology& topology,
                                    Iteration steady) {
  const auto workers = static_cast<std::int64_t>(topology.workers());
  const auto hosts = static_cast<std::int64_t>(topology.worker_hosts());
  const auto mean = [&](Duration sum) { return to_us(sum / (workers * steady)); };
  const WaitShares& waits = totals.steady_waits;
  return {{"computation_us", mean(totals.steady_compute)},
          {"local_aggregation_us", mean(waits.local_aggregation)},
          {"global_aggregation_work_us", mean(waits.aggregation)},
          {"global_aggregation_wait_us", mean(waits.others)},
          {"communication_exposed_us", mean(waits.communication)},
          {"communication_hidden_us", to_us(totals.steady_hidden / (hosts * steady))}};
}

nlohmann::ordered_json device_copies_of(const Record& record, const Topology& topology,
                                        Iteration iterations) {
  Duration copies{0};
  Duration hidden{0};
  for (std::size_t h = 0; h < topology.worker_hosts(); ++h) {
    const HostTally host = record.tally().host(HostId(h));
    copies += host.copies;
    hidden += host.copies_hidden;
  }
  const auto hosts = static_cast<std::int64_t>(topology.worker_hosts());
  return {{"busy_us", to_us(copies / (hosts * iterations))},
          {"hidden_share", copies == Duration(0) ? 1 : to_seconds(hidden) / to_seconds(copies)}};
}

nlohmann::ordered_json mechanism_of(const Assembly& assembly, const RunTotals& totals) {
  const Counters& counters = totals.counters;
  const Strategy& strategy = assembly.job.strategy;
  nlohmann::ordered_json by_kind;
  const TrafficByKind& traffic = totals.sent;
  for (std::size_t k = 0; k < traffic.size(); ++k) {
    if (traffic[k].messages > 0) {
      by_kind[std::string(name_of(static_cast<MessageKind>(k)))] = {
          {"messages", traffic[k].messages}, {"bytes", traffic[k].bytes}};
    }
  }
  auto collectives = nlohmann::ordered_json::object();
  int packings = strategy.servers_pack() ? 2 : 1;
  if (strategy.exchange == Exchange::kAllReduce) {
    const auto by_chunk = collectives_for(assembly.job, *assembly.chunks);
    for (std::size_t c = 0; c < by_chunk.size(); ++c) {
      const Collective collective = by_chunk[c];
      if ((*assembly.chunks)[ChunkId(c)].factor == Factor::kRest) {
        continue;
      }
      auto& chunks = collectives[std::string(name_of(kCollectiveNames, collective))];
      chunks = chunks.is_null() ? 1 : chunks.get<int>() + 1;
      packings = std::max(packings, packings_of(collective, ranks_of(assembly.job).size));
    }
  }
  nlohmann::ordered_json mechanism{{"messages", counters.messages},
                                   {"bytes", counters.payload_bytes},
                                   {"local_messages", counters.local_messages},
                                   {"chunks_per_model", assembly.chunks->size()},
                                   {"chunks_sent", counters.chunks},
                                   {"bytes_before_packing", counters.before_packing},
                                   {"bytes_after_packing", counters.after_packing},
                                   {"gradients_summed_locally", counters.local_sums},
                                   {"updates", counters.updates},
                                   {"updates_by", updates_by(strategy)},
                                   {"updates_on", strategy.learners_update ? "device" : "host"},
                                   {"overtakings_egress", counters.egress_overtakings},
                                   {"overtakings_inbox", counters.inbox_overtakings},
                                   {"chunks_by_collective", collectives},
                                   {"hidden_share", totals.hidden_share()},
                                   {"sent_by_kind", by_kind}};
  if (traits_of(strategy.algorithm).sends == Sends::kOuterGradients) {
    mechanism["outer_steps"] = counters.outer_steps;
    mechanism["cadence"] = cadence_of(strategy);
  }
  if (traits_of(strategy.codec).kind == CodecKind::kDense) {
    mechanism["packings"] = packings;
  }
  if (strategy.coded()) {
    mechanism["packed_on"] = strategy.learners_pack ? "device" : "host";
  }
  if (strategy.gathered()) {
    mechanism["top_k"] = {{"block", strategy.top_k.block},
                          {"kept", strategy.top_k.kept},
                          {"bits", strategy.top_k.bits}};
  }
  if (strategy.factored()) {
    mechanism["powersgd"] = powersgd_of(assembly);
  }
  if (strategy.error_feedback) {
    mechanism["error_feedback_decay"] = strategy.feedback_decay;
  }
  return mechanism;
}

}  // namespace sluice
