#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "formats/cluster.h"
#include "model/strategy.h"
#include "optimizers/optimizer.h"
#include "optimizers/rate_schedule.h"
#include "planner/tuning.h"
#include "torch/torch_learner.h"

// The specification of a run, one struct for each part. The command line fills them from its
// settings, a program directly.
namespace sluice {

struct StrategySpec {
  std::string preset = "p3";  // the origin of the strategy, for the record
  Strategy strategy;
  ChosenSizes chosen;              // set by the user, so not tuned to the link
  std::vector<Codec> codecs = {};  // to choose from; empty: the strategy's
};

// How many servers are on hosts of their own, and who says so.
struct ServersApart {
  std::size_t servers = 0;  // 0: beside the workers of every host
  bool by_preset = false;   // the user leaves it to the preset
};

// Who trains. With several processes, each is a host.
struct HostsSpec {
  std::size_t workers = 4;  // in total
  std::size_t workers_per_host = 1;
  std::size_t servers = 0;  // on hosts of their own; 0: beside the workers of every host
  std::size_t servers_per_host = 1;

  std::size_t hosts_apart() const { return servers / servers_per_host; }
};

enum class DataKind : std::uint8_t {
  kFashionMnist,
  kColouredClothes,
  kCifar10,
  kCifar100,
  kImages,
  kText,
  kCharacters,
  kArrays,
  kSynthetic,
};

inline constexpr std::array kDataNames{
    Names<DataKind>{DataKind::kFashionMnist, "fashion-mnist"},
    Names<DataKind>{DataKind::kColouredClothes, "coloured-clothes"},
    Names<DataKind>{DataKind::kCifar10, "cifar10"},
    Names<DataKind>{DataKind::kCifar100, "cifar100"},
    Names<DataKind>{DataKind::kImages, "images"},
    Names<DataKind>{DataKind::kText, "text"},
    Names<DataKind>{DataKind::kCharacters, "characters"},
    Names<DataKind>{DataKind::kArrays, "arrays"},
    Names<DataKind>{DataKind::kSynthetic, "synthetic"},
};

struct DataSpec {
  DataKind kind = DataKind::kFashionMnist;
  // Empty: the default of Fashion-MNIST or of characters; other data has none.
  std::string folder;

  // Images, text, characters, synthetic data: the form of a sample.
  std::int64_t input_size = 0;            // of a built-in model; 0: its default
  std::vector<std::int64_t> input_shape;  // of a model from a file
  std::int64_t input_words = 0;           // synthetic, for a model from a file; 0: real numbers
  std::int64_t classes = 10;              // likewise

  // Fashion-MNIST, CIFAR, characters: the first ones for training and for the test; 0: all.
  // Synthetic: how many there are; 0: a default, and for the test a tenth as many.
  std::int64_t samples = 0;
  std::int64_t test_samples = 0;
  bool augment = true;        // images, CIFAR, characters
  std::string source = "en";  // text: languages
  std::string target = "vi";
  std::int64_t vocabulary = 32'000;

  bool operator==(const DataSpec&) const = default;
};

class DataStore;

// A model and what it computes with.
struct TaskSpec {
  std::string model = "lenet";  // one of torch_models(), or a TorchScript file
  DataSpec data;
  std::int64_t batch = 32;      // samples of one worker in one micro-batch
  std::int64_t accumulate = 1;  // micro-batches per iteration
  std::uint64_t seed = 1;
  std::string device = "auto";  // as torch_device() takes it
  Precision precision = Precision::kFp32;
  Loss loss = Loss::kCrossEntropy;  // of a model from a file
  std::optional<Kernels> kernels;   // none: the faster ones on this machine
  std::size_t loaders = 4;          // threads that load batches ahead; 0: workers load their own
  std::string init = {};            // as read_saved_model() takes it; "": the model's own start
  std::shared_ptr<DataStore> shared_data{};  // of several runs; none: the run reads its own
};

// A profile, and factors for its numbers.
struct ProfileSpec {
  std::string path;
  double time_scale = 1;
  double param_scale = 1;
  std::int64_t accumulate = 1;       // micro-batches per iteration; the profile is of one
  std::optional<Cluster> cluster{};  // of a replay: the speeds of its hosts and their jitter
};

// How the workers share the samples of an iteration.
struct BatchShares {
  bool by_speed = false;           // as measured at the start; else:
  std::vector<double> parts = {};  // by worker, in any unit; empty: equal

  bool equal() const { return !by_speed && parts.empty(); }
};

struct LengthSpec {
  std::int64_t epochs = 1;
  Iteration iterations = 0;         // 0: count epochs
  std::int64_t evaluate_every = 1;  // epochs; 0: only at the end
};

struct OptimizerSpec {
  double learning_rate = 0.05;
  bool scale_by_workers = false;
  double warmup_epochs = 0;
  std::vector<std::int64_t> decay_epochs;  // schedule step: after which the learning rate drops
  double momentum = 0.9;
  double weight_decay = 0;
  Optimizer optimizer = Optimizer::kSgd;
  OptimizerOptions options = {};
  RateShape schedule = RateShape::kStep;
  Iteration warmup_iterations = 0;            // added to the epochs
  std::optional<double> warmup_from{};        // share of the learning rate; none: 1 / workers
  std::vector<Iteration> decay_iterations{};  // as decay_epochs
  double decay_factor = 0.1;
  double final_share = 0;  // schedules cosine and linear: of the learning rate at the end
  bool by_epoch = false;   // likewise: the rate changes once per epoch, not with each iteration
  double clip_value = 0;   // 0: none
  double clip_norm = 0;    // 0: none
};

// A file that the record keeps a copy of.
struct KeptFile {
  std::string name;
  std::string text;
};

struct RecordSpec {
  std::string folder;  // new or empty; "": one under runs/ that is named after the run
  std::string trace;   // file for a Chrome trace; "auto": in the folder; "": none
  std::string config;  // the settings, as written to config.toml
  std::string command_line;
  std::vector<KeptFile> kept;  // that config.toml refers to
};

enum class NonFiniteAction : std::uint8_t {
  kStop,  // the run fails
  kWarn,
  kEnd,  // the run ends early, and its record says why; for trainings of a comparison
};

inline constexpr std::array kNonFiniteNames{
    Names<NonFiniteAction>{NonFiniteAction::kStop, "stop"},
    Names<NonFiniteAction>{NonFiniteAction::kWarn, "warn"},
};

// How a job that was started again had ended.
struct EarlierStart {
  std::string why;
  double after_s = 0;
  std::optional<Iteration> checkpoint;  // from which the next start could go on; none: from none
};

// What survives the end of a run, whatever ends it.
struct CheckpointSpec {
  std::string folder = {};  // for the checkpoints, which all hosts share; "": none are written
  Iteration every = 0;      // iterations; 0: by time
  Duration interval{0};     // 0: by iterations
  std::size_t keep = 3;     // so many of the last
  std::string resume = {};  // a folder of checkpoints or one of them; "auto": `folder`; "": none
  // That change the result, by name: a run that goes on must have the same, except for those about
  // hosts, since the hosts themselves are looked at; and, if its number of workers is another, for
  // those about the batches of a worker.
  std::map<std::string, std::string> settings = {};
  std::set<std::string> about_hosts = {};
  std::set<std::string> about_batches = {};
  std::vector<EarlierStart> earlier_starts = {};

  bool is_on() const { return !folder.empty() || !resume.empty(); }
};

// A training run.
struct TrainSpec {
  StrategySpec strategy;
  HostsSpec hosts;
  std::variant<TaskSpec, ProfileSpec> work;  // a profile is replayed
  BatchShares shares;
  LengthSpec length;
  OptimizerSpec optimizer;
  NonFiniteAction on_nonfinite =
      NonFiniteAction::kStop;  // for a loss or gradient that is not finite
  RecordSpec record;
  std::string save;  // folder for the trained model; "": it is not saved
  CheckpointSpec checkpoint = {};
};

}  // namespace sluice
