#include "exchange/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "session/collection.h"
#include "session/train_summary.h"

namespace sluice {
namespace {

// As the kernel has it: the program and its arguments. Empty where there is no such file.
std::string command_line() {
  const auto read = read_file("/proc/self/cmdline");
  std::string words = read ? *read : "";
  while (!words.empty() && words.back() == '\0') {
    words.pop_back();
  }
  std::ranges::replace(words, '\0', ' ');
  return words;
}

// The axes that the exchange has, as config.toml of `sluice train` names them.
std::string config_of(const std::string& preset, const Strategy& strategy) {
  std::string text;
  const auto add = [&](const char* key, std::string_view value) {
    text += fmt::format("{} = \"{}\"\n", key, value);
  };
  add("preset", preset);
  add("algorithm", name_of(kAlgorithmNames, strategy.algorithm));
  add("exchange", name_of(kExchangeNames, strategy.exchange));
  add("partition", name_of(kPartitionNames, strategy.partition));
  add("order", name_of(kOrderNames, strategy.order));
  add("codec", name_of(kCodecNames, strategy.codec));
  add("collective", strategy.collective ? name_of(kCollectiveNames, *strategy.collective) : "auto");
  add("update", "worker");
  return text;
}

RecordSpec record_spec(const RecordingSpec& spec, const std::string& preset, const Job& job) {
  return {.folder = spec.run == "auto" ? "" : spec.run,
          .trace = spec.trace,
          .config = config_of(preset, job.strategy),
          .command_line = command_line(),
          .kept = {}};
}

}  // namespace

Result<std::shared_ptr<Recording>> Recording::open(ProcessGroup& group, const RecordingSpec& spec,
                                                   const std::string& preset, const Job& job) {
  const RecordSpec of = record_spec(spec, preset, job);
  auto record = group.is_leader() ? Record::open(of, preset + "-" + spec.name)
                                  : Result<Record>(Record::without_folder(of));
  const std::string fault =
      group.from_leader(record ? "" : record.error().message(), "the folder of the record");
  if (!fault.empty()) {
    return Error(fault);
  }
  return std::shared_ptr<Recording>(new Recording(*std::move(record), spec, preset, job));
}

Recording::Recording(Record record, const RecordingSpec& spec, std::string preset, const Job& job)
    : record_(std::move(record)),
      preset_(std::move(preset)),
      name_(spec.name),
      extent_(Extent::open(job.topology.workers(), spec.batch)) {}

void Recording::begin(std::shared_ptr<const Assembly> assembly, const Clock& clock,
                      const NetworkFacts& network, const std::vector<std::string>& hosts) {
  assembly_ = std::move(assembly);
  clock_ = clock;
  network_ = network;
  hosts_ = hosts;
  const Job& job = assembly_->job;
  worker_ = job.topology.worker(job.here ? job.here->index() : 0);
  record_.watch(*assembly_, extent_.steady_from(), extent_.shown_from());
  if (record_.has_folder()) {
    journal_.emplace(
        extent_, RunClock{clock_}, [] { return std::nullopt; }, record_.folder(), log_);
  }
}

void Recording::enter(LayerId layer, Iteration at) {
  const Time now = clock_.now();
  end_forward(at, now);
  in_forward_ = layer;
  since_ = now;
}

void Recording::waited(LayerId layer, Iteration at, Time begin) {
  if (in_forward_ != layer) {
    end_forward(at, begin);
  }
  since_ = clock_.now();
  observer().waited(worker_, layer, at, begin, since_);
}

void Recording::forward_done(Iteration at) {
  if (in_forward_) {
    const Time now = clock_.now();
    end_forward(at, now);
    since_ = now;
  }
}

void Recording::gradient_ready(LayerId layer, Iteration at) {
  forward_done(at);
  const Time now = clock_.now();
  observer().computed(worker_, layer, at, Pass::kBackward, since_, now);
  since_ = now;
}

void Recording::end_forward(Iteration at, Time end) {
  if (in_forward_) {
    observer().computed(worker_, *in_forward_, at, Pass::kForward, since_, end);
    in_forward_.reset();
  }
}

Result<void> Recording::close(ProcessGroup& group) {
  const Counters counters = collect(group, record_, assembly_->counters());
  Result<void> closed;
  if (journal_) {
    group.attend([&] {
      closed = record_.close(loop_summary({preset_, name_, extent_, *assembly_, counters, record_,
                                           *journal_, network_}),
                             hosts_);
    });
    if (closed && journal_->error()) {
      closed = *journal_->error();
    }
  }
  return closed;
}

}  // namespace sluice
