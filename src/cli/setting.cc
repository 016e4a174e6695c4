#include "cli/setting.h"

#include <algorithm>

#include "algorithms/presets.h"
#include "base/check.h"
#include "compute/data/idx.h"

namespace sluice::cli {
namespace {

constexpr unsigned kTrain = static_cast<unsigned>(Command::kTrain);
constexpr unsigned kSimulate = static_cast<unsigned>(Command::kSimulate);
constexpr unsigned kRuns = kTrain | kSimulate;
constexpr unsigned kAll = kRuns | static_cast<unsigned>(Command::kShow);

constexpr std::int64_t kMost = 1'000'000'000'000;

template <class NameTable>
std::vector<std::string> words_of(const NameTable& names) {
  std::vector<std::string> words;
  for (const auto& [value, name] : names) {
    words.emplace_back(name);
  }
  return words;
}

std::vector<std::string> collective_words() {
  std::vector<std::string> words = words_of(kCollectiveNames);
  words.insert(words.begin(), "auto");
  return words;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

// Visits the five axes: key, help, names of the values, member of the strategy.
template <class Visit>
void for_each_axis(Visit visit) {
  visit("algorithm", "how workers stay in step", kAlgorithmNames, &Strategy::algorithm);
  visit("exchange", "how gradients become parameters", kExchangeNames, &Strategy::exchange);
  visit("partition", "what travels as one piece", kPartitionNames, &Strategy::partition);
  visit("order", "what leaves a host first", kOrderNames, &Strategy::order);
  visit("codec", "what gradients are packed into", kCodecNames, &Strategy::codec);
}

}  // namespace

std::vector<Setting> all_settings() {
  const Strategy strategy;
  std::vector<Setting> all{
      {"preset", kRuns, Form::word(preset_names()), "p3", "a known way to synchronise"}};
  for_each_axis([&](const char* key, const char* help, const auto& names, auto member) {
    all.push_back(
        {key, kRuns, Form::word(words_of(names)), name_of(names, strategy.*member), help});
  });
  const std::vector<Setting> others{
      {"slice", kRuns, Form::integer(1, kMost), strategy.slice_params,
       "parameters of a slice, at most"},
      {"kvstore-split", kRuns, Form::integer(1, kMost), strategy.kvstore_split_params,
       "partition kvstore: parameters from which on a layer is split over all servers"},
      {"credit", kRuns, Form::integer(1, kMost), strategy.credit,
       "bytes that a host hands to the network before they are confirmed"},
      {"deal", kRuns, Form::word({"staggered", "round-robin"}), "staggered",
       "whether each worker begins a layer with another piece"},
      {"collective", kRuns, Form::word(collective_words()), "auto",
       "how an all-reduce is done; auto: the cheapest for each piece"},
      {"staleness", kRuns, Form::integer(0, kMost), strategy.staleness,
       "ssp: iterations that a worker may be ahead of the slowest"},
      {"period", kRuns, Form::integer(1, kMost), strategy.period,
       "easgd: iterations between two talks with the centre"},
      {"elasticity", kRuns, Form::number(0, 1), strategy.elasticity,
       "easgd: pull towards the centre; 0: 0.9 / workers"},
      {"gossip-probability", kRuns, Form::number(0, 1), strategy.gossip_probability,
       "gosgd: probability of talking after an iteration"},
      {"pipeline-depth", kRuns, Form::integer(1, 64), strategy.pipeline_depth,
       "pipe-sgd: the update of an iteration uses the gradient of so many before"},
      {"pipeline-warmup", kRuns, Form::integer(0, kMost), strategy.pipeline_warmup,
       "pipe-sgd: iterations of plain synchronous training at the start"},

      {"model", kTrain, Form::text(), "lenet", "what to train; see sluice models"},
      {"data", kTrain, Form::word({"fashion-mnist", "synthetic"}), "fashion-mnist",
       "what to learn from"},
      {"data-dir", kTrain, Form::text(), kFashionMnistFolder, "folder of the data set"},
      {"workers", kTrain, Form::integer(1, 1024), 4, "workers, each with a server beside it"},
      {"batch", kTrain, Form::integer(1, 1'000'000), 32, "samples of one worker in one iteration"},
      {"epochs", kTrain, Form::integer(1, 1'000'000), 1, "passes over the data"},
      {"iterations", kTrain, Form::integer(0, kMost), 0, "stop after so many; 0: go by epochs"},
      {"lr", kTrain, Form::number(0, 1e6), 0.05, "learning rate"},
      {"lr-scale-by-workers", kTrain, Form::on_or_off(), false,
       "multiply the learning rate by the number of workers"},
      {"warmup-epochs", kTrain, Form::number(0, 1e6), 0.0,
       "epochs over which the learning rate rises to its value; pipe-sgd trains synchronously "
       "then"},
      {"lr-decay-epochs", kTrain, Form::text(), "",
       "epochs after which the learning rate falls to a tenth, for instance 30,60,80"},
      {"momentum", kTrain, Form::number(0, 1), 0.9, "share of the last step that is kept"},
      {"weight-decay", kTrain, Form::number(0, 1), 0.0, "pull of the parameters towards zero"},

      {"profile", kSimulate, Form::text(), nullptr, "JSON file with the layers and their times"},
      {"cluster", kSimulate, Form::text(), nullptr, "TOML file with the hosts and the network"},
      {"iterations", kSimulate, Form::integer(1, 1'000'000), 20, "iterations to simulate"},

      {"seed", kRuns, Form::integer(0, INT64_MAX), 1,
       "fixes the first parameters, the order of the samples and all chances"},
      {"run", kRuns, Form::text(), "", "folder for the record of the run; must be new or empty"},
      {"trace", kRuns, Form::text(), "",
       "write a Chrome trace to this file; without a name: trace.json in the run's folder", "auto"},
      {"json", kAll, Form::on_or_off(), false, "print the result as JSON"},
      {"log-level", kAll, Form::word({"trace", "debug", "info", "warn", "error", "off"}), "info",
       "what to say on standard error"},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::vector<Setting> settings_of(Command command) {
  std::vector<Setting> settings = all_settings();
  std::erase_if(settings, [&](const Setting& setting) {
    return (setting.commands & static_cast<unsigned>(command)) == 0;
  });
  return settings;
}

Json to_values(const Strategy& strategy) {
  Json values{{"slice", strategy.slice_params},
              {"kvstore-split", strategy.kvstore_split_params},
              {"credit", strategy.credit},
              {"deal", strategy.staggered ? "staggered" : "round-robin"},
              {"collective", strategy.collective ? name_of(kCollectiveNames, *strategy.collective)
                                                 : std::string_view("auto")},
              {"staleness", strategy.staleness},
              {"period", strategy.period},
              {"elasticity", strategy.elasticity},
              {"gossip-probability", strategy.gossip_probability},
              {"pipeline-depth", strategy.pipeline_depth},
              {"pipeline-warmup", strategy.pipeline_warmup}};
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    values[key] = name_of(names, strategy.*member);
  });
  return values;
}

Strategy to_strategy(const Json& values) {
  Strategy strategy;
  strategy.slice_params = values.at("slice");
  strategy.kvstore_split_params = values.at("kvstore-split");
  strategy.credit = values.at("credit");
  strategy.staggered = values.at("deal") == "staggered";
  strategy.collective = value_of(kCollectiveNames, values.at("collective").get<std::string>());
  strategy.staleness = values.at("staleness");
  strategy.period = values.at("period");
  strategy.elasticity = values.at("elasticity");
  strategy.gossip_probability = values.at("gossip-probability");
  strategy.pipeline_depth = values.at("pipeline-depth");
  strategy.pipeline_warmup = values.at("pipeline-warmup");
  strategy.seed = values.at("seed");
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    const auto value = value_of(names, values.at(key).get<std::string>());
    check(value.has_value(), "an axis has a known value");
    strategy.*member = *value;
  });
  return strategy;
}

}  // namespace sluice::cli
