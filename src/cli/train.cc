#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/training_table.h"
#include "drivers/mpi/launch.h"
#include "drivers/realtime/interrupt.h"
#include "nodes/presets.h"
#include "session/drive.h"
#include "session/engine.h"
#include "session/journal.h"
#include "session/loading.h"
#include "session/nonfinite.h"
#include "session/process_group.h"
#include "session/record.h"
#include "session/train_summary.h"
#include "session/training.h"
#include "session/workload.h"

namespace sluice::cli {
namespace {

// "30,60,80" as iterations.
Result<std::vector<Iteration>> drops_of(const std::string& text, Iteration per_epoch) {
  std::vector<Iteration> drops;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::int64_t epoch = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), epoch);
    if (fault != std::errc{} || end != word.data() + word.size() || epoch < 1 ||
        epoch > 1'000'000) {
      return Error(fmt::format(
          "--lr-decay-epochs: \"{}\" in \"{}\"; expected whole numbers from 1 on with commas "
          "between them, such as 30,60,80",
          word, text));
    }
    drops.push_back(epoch * per_epoch);
  }
  return drops;
}

double learning_rate_of(const Settings& settings, const Extent& extent) {
  return settings.number("lr") *
         (settings.on("lr-scale-by-workers") ? static_cast<double>(extent.workers) : 1.0);
}

Result<UpdateRule> rule_of(const Settings& settings, const Extent& extent) {
  auto drops = drops_of(settings.text("lr-decay-epochs"), extent.per_epoch);
  if (!drops) {
    return drops.error();
  }
  return UpdateRule{.rate = {.base = static_cast<float>(learning_rate_of(settings, extent)),
                             .warmup = extent.iterations_in(settings.number("warmup-epochs")),
                             .drops = *std::move(drops)},
                    .momentum = static_cast<float>(settings.number("momentum")),
                    .weight_decay = static_cast<float>(settings.number("weight-decay"))};
}

// The steps of a run that can fail for the user's reasons, before anything is computed.
struct Prepared {
  Workload work;
  UpdateRule rule;
  std::string kernels{};  // that a real model computes with, once they are chosen
};

// Threads stand for whatever hosts the user asks for; a process of a group is a host.
Result<void> check_hosts(const Settings& settings, bool launched) {
  const std::int64_t workers = settings.integer("workers");
  const std::int64_t per_host = settings.integer("workers-per-host");
  if (launched && settings.integer("servers") != 0) {
    return Error("--servers: here every process has a server beside its workers; leave it out");
  }
  if (workers % per_host != 0) {
    return Error(
        fmt::format("--workers-per-host: {} workers do not fill hosts of {}; take a divisor of {}",
                    workers, per_host, workers));
  }
  return {};
}

Topology topology_of(const Settings& settings, std::size_t hosts_per_machine) {
  const auto number = [&](const char* key) {
    return static_cast<std::size_t>(settings.integer(key));
  };
  const std::size_t per_host = number("workers-per-host");
  return {number("workers") / per_host, per_host, number("servers"), hosts_per_machine};
}

// A sum that is the driver's is either MPI's or made in shared memory.
Result<void> check_collective(const Strategy& strategy, const Topology& topology, bool launched) {
  const auto possible = launched || !strategy.driver_sums()
                            ? check_driver_sums(strategy, topology)
                            : Error("there is one process alone; start with mpirun");
  if (possible) {
    return {};
  }
  const bool by_mpi = strategy.collective == Collective::kNative;
  return Error(fmt::format(
      "--collective: {}: {}; or take another collective",
      by_mpi ? "native is MPI_Allreduce" : "memory is a sum in memory that all processes share",
      possible.error().message()));
}

Result<Prepared> prepare(const Settings& settings, bool launched) {
  if (const auto valid = validate(settings.strategy()); !valid) {
    return valid.error();
  }
  if (const auto valid = check_hosts(settings, launched); !valid) {
    return valid.error();
  }
  // Which processes share a machine is not known yet.
  const auto workers = static_cast<std::size_t>(settings.integer("workers"));
  if (const auto valid =
          check_collective(settings.strategy(), topology_of(settings, workers), launched);
      !valid) {
    return valid.error();
  }
  auto work = workload_of(settings);
  if (!work) {
    return work.error();
  }
  auto rule = rule_of(settings, work->extent);
  if (!rule) {
    return rule.error();
  }
  return Prepared{*std::move(work), *std::move(rule)};
}

// The first process measures, and the others do as it does: all compute with the same kernels.
void prepare_engine(const ProcessGroup& group, const Settings& settings, Prepared& prepared) {
  const TorchTask& task = *prepared.work.task;
  const std::string_view own =
      group.is_leader() ? name_of(kKernelsNames, choose_kernels(settings, task)) : "";
  prepared.kernels = group.from_first(std::string(own), "the choice of kernels");
  const auto kernels = value_of(kKernelsNames, prepared.kernels);
  check(kernels.has_value(), "the first process has chosen kernels");
  if (!group.is_leader()) {
    static_cast<void>(configure_engine(task, {}, *kernels));
  }
  if (*kernels != Kernels::kNative) {
    prepared.work.factory = *make_torch_learners(with_kernels(task, *kernels));
  }
}

// The counters of all processes; the first one's record takes up what the others have seen.
Counters collect(const ProcessGroup& group, const Counters& own, Record& record) {
  OrderedJson counters = OrderedJson::array();
  for (const auto counter : kCounters) {
    counters.push_back(own.*counter);
  }
  const OrderedJson self{{"counters", counters}, {"seen", record.report(HostId(group.rank()))}};
  const std::vector<std::string> reports = group.to_first(self.dump(), "the record");
  Counters sum;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const OrderedJson report = OrderedJson::parse(reports[r]);
    for (std::size_t c = 0; c < kCounters.size(); ++c) {
      sum.*kCounters[c] += report.at("counters").at(c).get<std::int64_t>();
    }
    if (r != group.rank()) {
      record.adopt(HostId(r), report.at("seen"));
    }
  }
  return sum;
}

// Before anything else that can fail or take long; the exit code.
int save(const Settings& settings, Learner& evaluator) {
  const std::string folder = settings.text("save");
  const auto saved = folder.empty() ? Result<void>() : evaluator.save(folder);
  return saved ? kOk : failed(saved.error());
}

// "SIGINT after 120 of 500 iterations"; empty if a signal has not cut the run short.
std::string why_stopped(const Trained& trained, const Journal& journal, const Extent& extent) {
  return trained.stopped && journal.done() < extent.iterations
             ? fmt::format("{} after {} of {} iterations", signal_name(*trained.stopped),
                           journal.done(), extent.iterations)
             : "";
}

// On the leader, with the parameters as they are at the end; the exit code.
int end_training(const Settings& settings, const std::string& stopped, const Extent& extent,
                 Learner& evaluator, Journal& journal) {
  const int code = save(settings, evaluator);
  if (stopped.empty()) {
    journal.on_boundary(extent.iterations);
  } else {
    journal.on_stop(stopped);
  }
  return code;
}

OnNonFinite on_nonfinite(const Settings& settings, const Workload& work,
                         const std::vector<Layer>& layers) {
  if (!work.task) {
    return {};  // a replay's numbers mean nothing
  }
  return settings.text("on-nonfinite") == "stop" ? stop_on_nonfinite(layers)
                                                 : warn_of_nonfinite(layers, warn);
}

// Writes and prints the results; the exit code.
int conclude(const Settings& settings, const OrderedJson& summary,
             const std::vector<std::string>& hosts, Record& record, const Journal& journal) {
  int code = kOk;
  if (const auto closed = record.close(summary, settings, hosts); !closed) {
    code = failed(closed.error());
  }
  if (journal.error()) {
    code = failed(*journal.error());
  }
  if (settings.on("json")) {
    print(summary);
  } else {
    print_training(summary, record.folder().path());
  }
  return code;
}

// A folder that cannot be made is better found before a long training than after it.
Result<void> make_save_folder(const Settings& settings) {
  const std::string folder = settings.text("save");
  std::error_code failed;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, failed);
  }
  return failed ? Result<void>(Error(fmt::format("--save: {}: the folder cannot be made: {}",
                                                 folder, failed.message())))
                : Result<void>();
}

Result<Record> open_record(const ProcessGroup& group, const Settings& settings,
                           const Workload& work) {
  if (const auto made = group.is_leader() ? make_save_folder(settings) : Result<void>(); !made) {
    return made.error();
  }
  return group.is_leader() ? Record::open(settings, settings.text("preset") + "-" + work.name)
                           : Record::without_folder(settings);
}

Job job_of(const Settings& settings, const Prepared& prepared, const std::vector<Layer>& layers,
           std::size_t hosts_per_machine) {
  Job job;
  job.layers = layers;
  job.topology = topology_of(settings, hosts_per_machine);
  job.strategy = settings.strategy();
  job.strategy.pipeline_warmup =
      std::max(job.strategy.pipeline_warmup,
               prepared.work.extent.iterations_in(settings.number("warmup-epochs")));
  job.strategy.dgc.epoch_iterations = prepared.work.extent.per_epoch;
  return job;
}

// When it returns, the clocks of all processes start together. Replicas that differ at the start
// would never agree.
void begin_together(const ProcessGroup& group, Learner& evaluator) {
  const std::string own = group.is_launched() ? parameters_hash(evaluator.parameters()) : "";
  if (group.from_first(own, "leave to begin") != own) {
    throw std::runtime_error(
        "the model does not start with the parameters of rank 0; is its file the same on all "
        "hosts?");
  }
}

int train(const ProcessGroup& group, Settings settings) {
  auto valid = [&]() -> Result<Prepared> {
    const auto dictated = group.dictate_workers(settings);
    return dictated ? prepare(settings, group.is_launched()) : dictated.error();
  }();
  auto opened = valid ? open_record(group, settings, valid->work) : valid.error();
  const auto ready = group.check_in(settings, opened ? Result<void>() : opened.error());
  if (!ready) {
    return group.is_leader() ? bad_input(ready.error()) : kBadInput;
  }
  Record record = *std::move(opened);
  Prepared prepared = *std::move(valid);
  if (prepared.work.task) {
    prepare_engine(group, settings, prepared);
  }
  const std::size_t workers = group.is_launched()
                                  ? static_cast<std::size_t>(settings.integer("workers-per-host"))
                                  : prepared.work.extent.workers;
  std::vector<std::unique_ptr<Learner>> learners;  // of this process's workers
  for (std::size_t w = 0; w < workers; ++w) {
    learners.push_back(prepared.work.factory(group.rank() * workers + w));
  }
  Learner& evaluator = *learners.front();
  Job job = job_of(settings, prepared, evaluator.layers(), *ready);
  if (const auto valid = check_collective(job.strategy, job.topology, group.is_launched());
      !valid) {
    return group.is_leader() ? bad_input(valid.error()) : kBadInput;
  }
  MpiWorld* const world = group.is_launched() ? &group.world() : nullptr;
  tune_for_world(world, job, settings.chosen_sizes());
  if (group.is_leader() && world != nullptr && !job.topology.on_one_machine()) {
    spdlog::info("links of {:.3g} Gb/s and {:.0f} us", job.link.gbps(), to_us(job.link.startup));
  }
  begin_together(group, evaluator);
  const Clock clock;
  std::optional<Journal> journal;
  if (group.is_leader()) {
    journal.emplace(prepared.work.extent, clock, evaluator, record.folder());
  }
  const Interrupt interrupt;
  Trained trained =
      run_training(job, {.group = group,
                         .learners = learners,
                         .rule = prepared.rule,
                         .extent = prepared.work.extent,
                         .clock = clock,
                         .record = record,
                         .journal = journal ? &*journal : nullptr,
                         .on_nonfinite = on_nonfinite(settings, prepared.work, job.layers),
                         .interrupted = [&] { return interrupt.signal(); }});
  std::string stopped;
  int code = kOk;
  if (group.is_leader()) {
    stopped = why_stopped(trained, *journal, prepared.work.extent);
    code = end_training(settings, stopped, prepared.work.extent, evaluator, *journal);
  }
  trained.counters = collect(group, trained.counters, record);
  const OrderedJson loading =
      prepared.work.loader ? collect_loading(group, *prepared.work.loader) : OrderedJson();
  const std::vector<std::string> hosts = group.to_first(host_name(), "the name of its host");
  if (group.is_leader()) {
    OrderedJson summary = training_summary({settings, prepared.work, prepared.kernels, trained,
                                            evaluator.parameters(), record, *journal, stopped});
    summary["learning_rate"] = learning_rate_of(settings, prepared.work.extent);
    summary["network"] = network_summary(trained.assembly.job, world);
    if (!loading.is_null()) {
      summary["loading"] = loading;
    }
    code = std::max(code, conclude(settings, summary, hosts, record, *journal));
    code = code == kOk && !stopped.empty() ? 128 + *trained.stopped : code;
  }
  return std::stoi(group.from_first(std::to_string(code), "the end of the run"));
}

}  // namespace

int train(const Settings& settings) {
  const auto group = ProcessGroup::join(warn);
  if (!group) {
    return failed(group.error());
  }
  return run_in(*group, [&] { return train(*group, settings); });
}

}  // namespace sluice::cli
