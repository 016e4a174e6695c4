#include "cli/setting.h"

#include <algorithm>

#include "base/check.h"
#include "data/idx.h"
#include "lab/plan.h"
#include "nodes/presets.h"
#include "torch/torch_learner.h"

namespace sluice::cli {
namespace {

constexpr unsigned kTrain = static_cast<unsigned>(Command::kTrain);
constexpr unsigned kSimulate = static_cast<unsigned>(Command::kSimulate);
constexpr unsigned kRuns = kTrain | kSimulate;
constexpr unsigned kShow = static_cast<unsigned>(Command::kShow);
constexpr unsigned kLab = static_cast<unsigned>(Command::kLab);
constexpr unsigned kDoctor = static_cast<unsigned>(Command::kDoctor);
constexpr unsigned kProbe = static_cast<unsigned>(Command::kProbe);
constexpr unsigned kProfile = static_cast<unsigned>(Command::kProfile);

constexpr std::int64_t kMax = 1'000'000'000'000;

template <class NameTable>
std::vector<std::string> words_of(const NameTable& names) {
  std::vector<std::string> words;
  for (const auto& [value, name] : names) {
    words.emplace_back(name);
  }
  return words;
}

// The words of a table, and one for none of them.
template <class NameTable>
std::vector<std::string> words_or(const std::string& other, const NameTable& names) {
  std::vector<std::string> words = words_of(names);
  words.insert(words.begin(), other);
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

// Visits the plain values of a strategy: key, form, help, access to the value.
template <class Visit>
void for_each_value(Visit visit) {
  const Form count = Form::integer(1, kMax);
  visit(
      "slice", count, "parameters of a slice, at most",
      [](auto& s) -> auto& { return s.slice_params; });
  visit(
      "kvstore-split", count,
      "partition kvstore: parameters from which on a layer is split over all servers",
      [](auto& s) -> auto& { return s.kvstore_split_params; });
  visit(
      "credit", count,
      "order priority: bytes that a host hands to the network before they are confirmed",
      [](auto& s) -> auto& { return s.credit; });
  visit(
      "peer-credit", count, "likewise for each other host, in any order",
      [](auto& s) -> auto& { return s.peer_credit; });
  visit(
      "segment", count,
      "parameters in a hop of an all-reduce, at most; longer pieces are summed in segments",
      [](auto& s) -> auto& { return s.segment_params; });
  visit(
      "local-aggregation", Form::on_or_off(),
      "whether the workers of a machine sum their gradients before they leave it",
      [](auto& s) -> auto& { return s.local_aggregation; });
  visit(
      "error-feedback", Form::on_or_off(),
      "truncate16, quantise8: add what the code loses to the next gradient",
      [](auto& s) -> auto& { return s.error_feedback; });
  visit(
      "sparsity", Form::number(0, 0.999999), "dgc: share of each gradient that is held back",
      [](auto& s) -> auto& { return s.dgc.sparsity; });
  visit(
      "dgc-accumulation", Form::on_or_off(), "dgc: what is not sent stays until it is",
      [](auto& s) -> auto& { return s.dgc.accumulation; });
  visit(
      "dgc-momentum-correction", Form::on_or_off(), "dgc: accumulate velocities, not gradients",
      [](auto& s) -> auto& { return s.dgc.momentum_correction; });
  visit(
      "dgc-clipping", Form::on_or_off(), "dgc: clip each worker's own gradient",
      [](auto& s) -> auto& { return s.dgc.clipping; });
  visit(
      "dgc-factor-masking", Form::on_or_off(), "dgc: what has been sent loses its velocity",
      [](auto& s) -> auto& { return s.dgc.factor_masking; });
  visit(
      "dgc-warmup", Form::on_or_off(), "dgc: raise the sparsity over the first four epochs",
      [](auto& s) -> auto& { return s.dgc.warm_up; });
  visit(
      "dgc-clip-norm", Form::number(0, 1e9),
      "dgc: the norm that gradients are clipped to, over all workers",
      [](auto& s) -> auto& { return s.dgc.clip_norm; });
  visit(
      "staleness", Form::integer(0, kMax),
      "ssp: iterations that a worker may be ahead of the slowest",
      [](auto& s) -> auto& { return s.staleness; });
  visit(
      "period", count, "easgd: iterations between two talks with the centre",
      [](auto& s) -> auto& { return s.period; });
  visit(
      "elasticity", Form::number(0, 1), "easgd: pull towards the centre; 0: 0.9 / workers",
      [](auto& s) -> auto& { return s.elasticity; });
  visit(
      "gossip-probability", Form::number(0, 1), "gosgd: probability of talking after an iteration",
      [](auto& s) -> auto& { return s.gossip_probability; });
  visit(
      "pipeline-depth", Form::integer(1, 64),
      "pipe-sgd: the update of an iteration uses the gradient of so many before",
      [](auto& s) -> auto& { return s.pipeline_depth; });
  visit(
      "pipeline-warmup", Form::integer(0, kMax),
      "pipe-sgd: iterations of plain synchronous training at the start",
      [](auto& s) -> auto& { return s.pipeline_warmup; });
}

// The value of a word that its form has let pass.
template <class NameTable>
auto known(const NameTable& names, const std::string& word) {
  const auto value = value_of(names, word);
  check(value.has_value(), "a word has a known value");
  return *value;
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
  for_each_value([&](const char* key, const Form& form, const char* help, auto access) {
    all.push_back({key, kRuns, form, access(strategy), help});
  });
  const std::vector<Setting> others{
      {"merge", kRuns, Form::word(words_of(kMergeNames)), name_of(kMergeNames, strategy.merge),
       "partition merged: the best groups of layers, or those of MG-WFBP's greedy rule"},
      {"deal", kRuns, Form::word({"staggered", "round-robin"}), "staggered",
       "whether each worker begins a layer with another piece"},
      {"collective", kRuns, Form::word(words_or("auto", kCollectiveNames)), "auto",
       "how an all-reduce is done; auto: the cheapest for each piece; native: MPI_Allreduce; "
       "memory: in memory that all processes share"},

      {"model", kTrain, Form::text(), "lenet",
       "what to train: a name that sluice models lists, or a TorchScript file such as net.pt; "
       "replay:PROFILE.json sleeps a profile's times instead"},
      {"model", kProfile, Form::text(), nullptr,
       "model whose layers are timed: a name that sluice models lists, or a TorchScript file"},
      {"time-scale", kRuns, Form::number(0, 1e6), 1.0,
       "multiply the profile's times by this, in a replay or in simulate"},
      {"param-scale", kRuns, Form::number(1e-9, 1e3), 1.0,
       "multiply the profile's numbers of parameters by this, likewise"},
      {"data", kTrain,
       Form::word({"fashion-mnist", "cifar10", "cifar100", "images", "text", "synthetic"}),
       "fashion-mnist",
       "what to learn from; images: train/CLASS/*.jpg or .png; text: a sentence a line"},
      {"data", kProfile, Form::word({"fashion-mnist", "cifar10", "cifar100", "synthetic"}),
       "synthetic", "what to compute with"},
      {"data-dir", kTrain | kProfile, Form::text(), kFashionMnistFolder, "folder of the data set"},
      {"samples", kTrain, Form::integer(0, kMax), 0,
       "synthetic data: samples to learn from, and a tenth as many to test with; 0: 10000, or what "
       "512 MiB hold"},
      {"input-size", kTrain | kProfile, Form::integer(0, 1'000'000), 0,
       "images, text, synthetic data: side of an image, longest sentence with its end mark; 0: "
       "what the model was made for"},
      {"input-shape", kTrain | kProfile, Form::text(), "",
       "likewise for a model from a file: shape of a sample, for instance 3x32x32; pairs of "
       "sentences: 2xLONGEST"},
      {"input-words", kTrain | kProfile, Form::integer(0, 1'000'000'000), 0,
       "synthetic data for a model from a file: samples are pairs of sentences in so many words, "
       "or for 0 real numbers"},
      {"classes", kTrain | kProfile, Form::integer(1, 1'000'000'000), 10,
       "likewise: what there is to tell apart, or words of the second sentence"},
      {"augment", kTrain, Form::on_or_off(), true,
       "images: train on random parts of them, mirrored or not; off: on their middle"},
      {"source", kTrain, Form::text(), "en",
       "text: language to translate from, ending of its files"},
      {"target", kTrain, Form::text(), "vi", "text: language to translate to, likewise"},
      {"vocabulary", kTrain, Form::integer(1, 10'000'000), 32'000,
       "text: words that are known of each language, the most frequent ones"},
      {"loaders", kTrain, Form::integer(0, 1024), 4,
       "threads of each process that load batches ahead; 0: workers load their own"},
      {"workers", kTrain, Form::integer(1, 1024), 4, "workers in all"},
      {"workers-per-host", kTrain, Form::integer(1, 1024), 1,
       "workers that share a host: its server, its way out, its local aggregation"},
      {"servers", kTrain, Form::integer(0, 1024), 0,
       "servers on hosts of their own; 0: one beside the workers of every host"},
      {"batch", kTrain | kProfile, Form::integer(1, 1'000'000), 32,
       "samples of one worker in one iteration"},
      {"epochs", kTrain, Form::integer(1, 1'000'000), 1, "passes over the data"},
      {"iterations", kTrain, Form::integer(0, kMax), 0, "stop after so many; 0: go by epochs"},
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
      {"device", kTrain | kProfile, Form::text(), "auto",
       "where to compute: cpu, cuda (all GPUs by turns), cuda:N; auto: cuda where there is one"},
      {"kernels", kTrain | kProfile, Form::word(words_or("auto", kKernelsNames)), "auto",
       "how a CPU computes; auto: what is clearly faster here"},

      {"save", kTrain, Form::text(), "",
       "folder for the trained model: model.safetensors, and model.pt if it came as TorchScript"},

      {"profile", kSimulate, Form::text(), nullptr, "JSON file with the layers and their times"},
      {"cluster", kSimulate, Form::text(), nullptr, "TOML file with the hosts and the network"},
      {"iterations", kSimulate, Form::integer(1, 1'000'000), 20, "iterations to simulate"},

      {"hosts", kLab, Form::integer(1, lab::kMostHosts), 4, "emulated machines"},
      {"workers-per-host", kLab, Form::integer(1, 64), 1, "processes on each of them"},
      {"rate", kLab, Form::text(), "1gbit",
       "bandwidth of a host's link, each direction: 500mbit, 2.5gbit, none for no limit"},
      {"rate-of", kLab, Form::text(), "",
       "hosts with another rate, counted from 0, for instance 2=500mbit,3=none"},

      {"net", kDoctor, Form::on_or_off(), false,
       "measure the links between all processes instead; start it with mpirun"},

      {"out", kProbe, Form::text(), nullptr, "TOML file to write, for simulate --cluster"},
      {"allreduce", kProbe, Form::word(words_or("none", kCollectiveNames)), "none",
       "the collective whose a + b*M is to replace the network in that file"},

      {"device-flops", kProfile, Form::number(0, 1e21), 0.0,
       "measure nothing, but estimate the times of a device that does so many operations a second"},
      {"device-bandwidth", kProfile, Form::number(0, 1e21), 0.0,
       "estimate: bytes a second of its memory; 0: one for 20 operations, as GPUs have it"},
      {"samples-per-s", kProfile, Form::number(0, 1e12), 0.0,
       "estimate: scale all times so that the device does so many; 0: as they are"},
      {"device-name", kProfile, Form::text(), "", "what the file calls the device"},
      {"source", kProfile, Form::text(), "", "where the figures come from, for the file"},
      {"out", kProfile, Form::text(), nullptr, "JSON file to write, for simulate --profile"},

      {"seed", kRuns | kProfile, Form::integer(0, INT64_MAX), 1,
       "fixes the first parameters, the order of the samples and all chances"},
      {"run", kRuns | kLab, Form::text(), "",
       "folder for the record of the run; must be new or empty"},
      {"trace", kRuns, Form::text(), "",
       "write a Chrome trace to this file; without a name: trace.json in the run's folder", "auto"},
      {"json", kRuns | kShow | kDoctor | kProbe | kProfile, Form::on_or_off(), false,
       "print the result as JSON"},
      {"log-level", kRuns | kShow | kLab | kDoctor | kProbe | kProfile,
       Form::word({"trace", "debug", "info", "warn", "error", "off"}), "info",
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
  Json values{{"merge", name_of(kMergeNames, strategy.merge)},
              {"deal", strategy.staggered ? "staggered" : "round-robin"},
              {"collective", strategy.collective ? name_of(kCollectiveNames, *strategy.collective)
                                                 : std::string_view("auto")}};
  for_each_value([&](const char* key, const Form&, const char*, auto access) {
    values[key] = access(strategy);
  });
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    values[key] = name_of(names, strategy.*member);
  });
  return values;
}

Strategy to_strategy(const Json& values) {
  Strategy strategy;
  strategy.merge = known(kMergeNames, values.at("merge"));
  strategy.staggered = values.at("deal") == "staggered";
  strategy.collective = value_of(kCollectiveNames, values.at("collective").get<std::string>());
  strategy.seed = values.at("seed");
  for_each_value([&](const char* key, const Form&, const char*, auto access) {
    values.at(key).get_to(access(strategy));
  });
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    strategy.*member = known(names, values.at(key));
  });
  return strategy;
}

}  // namespace sluice::cli
