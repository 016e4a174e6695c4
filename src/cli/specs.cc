#include "cli/specs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "cli/optimizer_settings.h"
#include "cli/strategy_settings.h"
#include "nodes/presets.h"
#include "session/batch_shares.h"
#include "session/task_data.h"

namespace sluice::cli {
namespace {

std::size_t size_of(const Settings& settings, const char* key) {
  return static_cast<std::size_t>(settings.integer(key));
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = fault == std::errc() && end == text.data() + text.size();
  return is_one ? std::optional(number) : std::nullopt;
}

// "3x32x32" as numbers; empty if it is malformed or too large.
std::vector<std::int64_t> shape_of(const std::string& text) {
  std::vector<std::int64_t> shape;
  std::int64_t room = kMaxSampleFloats;
  std::istringstream sides(text + "x");
  for (std::string side; std::getline(sides, side, 'x');) {
    const auto length = whole_number(side);
    if (!length || *length < 1 || *length > room) {
      return {};
    }
    shape.push_back(*length);
    room /= *length;
  }
  return shape;
}

// Refuses flags that have no effect on the data in use.
Result<void> check_data_flags(const Settings& settings) {
  struct Rule {
    const char* key;
    std::vector<std::string> data;
  };
  const std::vector<std::string> sliceable{"fashion-mnist", "coloured-clothes", "cifar10",
                                           "cifar100",      "characters",       "synthetic"};
  const std::vector<std::string> formed{"images", "text", "characters", "synthetic"};
  for (const Rule& rule :
       {Rule{"samples", sliceable}, Rule{"test-samples", sliceable}, Rule{"input-size", formed},
        Rule{"input-shape", formed}, Rule{"input-words", {"synthetic"}},
        Rule{"classes", {"synthetic"}},
        Rule{"augment", {"cifar10", "cifar100", "images", "characters"}}, Rule{"source", {"text"}},
        Rule{"target", {"text"}}, Rule{"vocabulary", {"text"}}}) {
    const auto unused = settings.refuse(
        {rule.key}, fmt::format("is for --data {} only", fmt::join(rule.data, ", ")));
    if (!unused && std::ranges::find(rule.data, settings.text("data")) == rule.data.end()) {
      return unused.error();
    }
  }
  if (is_model_file(settings.text("model"))) {
    return settings.refuse({"input-size"},
                           "is for built-in models; for one from a file use --input-shape");
  }
  if (auto plain =
          settings.refuse({"loss"}, "is for a model from a file; built-in models have their own");
      !plain) {
    return plain;
  }
  return settings.refuse({"input-shape", "input-words", "classes"},
                         "is for a model from a file; for a built-in one use --input-size");
}

Result<TaskSpec> training_spec(const Settings& settings) {
  if (const auto plain =
          settings.refuse({"time-scale", "param-scale"}, "is for --model replay:PROFILE.json only");
      !plain) {
    return plain.error();
  }
  if (const auto plain = settings.refuse({"cluster"},
                                         "is for --model replay:PROFILE.json, which sleeps; a "
                                         "model computes as fast as it can");
      !plain) {
    return plain.error();
  }
  return model_spec(settings, size_of(settings, "loaders"));
}

// The steps of virtual workers load their own batches: there is no network to wait for meanwhile.
Result<TaskSpec> virtual_training_spec(const Settings& settings) {
  if (settings.text("model").starts_with(kReplay)) {
    return Error("--model: a replay learns nothing; leave out --train, and use --profile");
  }
  if (const auto plain =
          settings.refuse({"param-scale"}, "--train has the parameters of its model");
      !plain) {
    return plain.error();
  }
  return model_spec(settings, 0);
}

Result<ProfileSpec> replay_spec(const Settings& settings) {
  if (const auto plain = settings.refuse(
          {"data", "data-dir", "samples", "test-samples", "input-size", "input-shape",
           "input-words", "classes", "augment", "source", "target", "vocabulary", "loaders",
           "batch", "epochs", "evaluate-every"},
          "a replay has no data; its batch is the profile's, its length --iterations");
      !plain) {
    return plain.error();
  }
  if (const auto plain = settings.refuse({"save", "init"}, "a replay learns nothing"); !plain) {
    return plain.error();
  }
  if (const auto plain = settings.refuse({"precision", "loss"}, "a replay computes nothing");
      !plain) {
    return plain.error();
  }
  ProfileSpec spec = profile_spec(settings.path("model", kReplay), settings);
  if (!settings.text("cluster").empty()) {
    auto cluster = read_cluster(settings.path("cluster"));
    if (!cluster) {
      return cluster.error();
    }
    spec.cluster = *std::move(cluster);
  }
  return spec;
}

Result<std::variant<TaskSpec, ProfileSpec>> work_spec(const Settings& settings) {
  const auto either = [](auto spec) -> Result<std::variant<TaskSpec, ProfileSpec>> {
    if (!spec) {
      return spec.error();
    }
    return std::variant<TaskSpec, ProfileSpec>(*std::move(spec));
  };
  return settings.text("model").starts_with(kReplay) ? either(replay_spec(settings))
                                                     : either(training_spec(settings));
}

}  // namespace

Agreement agreement_of(const Settings& settings) {
  const Json values = settings.values();
  Agreement agreement;
  for (const auto& [key, value] : values.items()) {
    agreement[key] = value.dump();
  }
  return agreement;
}

std::string note_on(const ServersApart& apart, const std::string& preset) {
  return apart.by_preset && apart.servers > 0
             ? fmt::format(
                   "preset {} has {} on a host of its own, as its paper does; --servers 0 "
                   "puts servers beside the workers of every host",
                   preset,
                   apart.servers == 1 ? "its server" : fmt::format("{} servers", apart.servers))
             : "";
}

ServersApart servers_apart(const Settings& settings) {
  const std::string preset = settings.text("preset");
  const Json chosen = settings.values().at("servers");
  if (chosen.is_number()) {
    return {.servers = chosen.get<std::size_t>()};
  }
  // Several servers per host are something else than the preset has.
  const bool as_usual = settings.values().value("servers-per-host", 1) == 1;
  const bool apart = settings.strategy().uses_servers() && as_usual;
  return {.servers = apart ? find_preset(preset)->servers : 0, .by_preset = true};
}

RecordSpec run_folder_spec(const Settings& settings) {
  return {.folder = settings.text("run"),
          .trace = "",
          .config = settings.to_toml(),
          .command_line = settings.command_line(),
          .kept = {}};
}

RecordSpec record_spec(const Settings& settings) {
  RecordSpec spec = run_folder_spec(settings);
  spec.trace = settings.text("trace");
  return spec;
}

Result<RecordSpec> record_spec(const Settings& settings, const std::vector<Copied>& copied) {
  RecordSpec spec = record_spec(settings);
  std::map<std::string, std::string> copies;
  for (const auto& [key, name, prefix] : copied) {
    auto text = read_file(settings.path(key, prefix));
    if (!text) {
      return text.error();
    }
    copies[key] = prefix + name;
    spec.kept.push_back({name, *std::move(text)});
  }
  spec.config = settings.to_toml(copies);
  return spec;
}

Result<TaskSpec> task_spec(const Settings& settings) {
  TaskSpec task;
  task.model = settings.text("model");
  task.batch = settings.integer("batch");
  task.accumulate = settings.values().value("accumulate", 1);
  task.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  task.device = settings.text("device");
  task.loss = *value_of(kLossNames, settings.text("loss"));
  task.precision = *value_of(kPrecisionNames, settings.text("precision"));
  task.kernels = value_of(kKernelsNames, settings.text("kernels"));
  DataSpec& data = task.data;
  const auto kind = value_of(kDataNames, settings.text("data"));
  check(kind.has_value(), "every data set has a kind");
  data.kind = *kind;
  if (settings.origin("data-dir").kind != Origin::Kind::kDefault) {
    data.folder = settings.text("data-dir");
  }
  data.input_size = settings.integer("input-size");
  data.input_words = settings.integer("input-words");
  data.classes = settings.integer("classes");
  const std::string shape = settings.text("input-shape");
  data.input_shape = shape_of(shape);
  if (is_model_file(task.model) && !shape.empty() && data.input_shape.empty()) {
    const bool pairs = data.kind == DataKind::kText || data.input_words > 0;
    return Error(fmt::format("--input-shape: is \"{}\", expected {}", shape,
                             pairs ? "2xLONGEST for pairs of sentences, such as 2x20"
                                   : "whole numbers such as 3x32x32, a sample of 512 MiB at most"));
  }
  return task;
}

Result<TaskSpec> model_spec(const Settings& settings, std::size_t loaders) {
  if (const auto fitting = check_data_flags(settings); !fitting) {
    return fitting.error();
  }
  auto common = task_spec(settings);
  if (!common) {
    return common;
  }
  TaskSpec task = *std::move(common);
  task.data.samples = settings.integer("samples");
  task.data.test_samples = settings.integer("test-samples");
  task.data.augment = settings.on("augment");
  task.data.source = settings.text("source");
  task.data.target = settings.text("target");
  task.data.vocabulary = settings.integer("vocabulary");
  task.loaders = loaders;
  task.init = settings.text("init");
  return task;
}

ProfileSpec profile_spec(const std::string& path, const Settings& settings) {
  return {.path = path,
          .time_scale = settings.number("time-scale"),
          .param_scale = settings.number("param-scale"),
          .accumulate = settings.integer("accumulate")};
}

Result<void> check_plain_simulation(const Settings& settings) {
  if (settings.text("sweep").empty()) {
    if (auto alone = settings.refuse({"threads"},
                                     "there is one simulation, which takes one thread; "
                                     "leave it out, or add --sweep or --train");
        !alone) {
      return alone;
    }
  }
  const std::string why = "nothing is trained; add --train, or leave it out";
  if (auto plain =
          settings.refuse({"warmup-iterations", "warmup-from", "lr-schedule", "lr-decay-iterations",
                           "lr-decay-factor", "lr-final", "lr-by", "clip-value", "dampening",
                           "nesterov", "beta1", "beta2", "epsilon", "alpha", "lr-decay"},
                          why);
      !plain) {
    return plain;
  }
  return settings.refuse({"model",         "device",          "kernels",      "data",
                          "data-dir",      "samples",         "test-samples", "input-size",
                          "input-shape",   "input-words",     "classes",      "augment",
                          "source",        "target",          "vocabulary",   "batch",
                          "recipe",        "epochs",          "lr",           "lr-scale-by-workers",
                          "warmup-epochs", "lr-decay-epochs", "momentum",     "weight-decay",
                          "on-nonfinite",  "evaluate-every",  "save",         "precision",
                          "loss",          "times-at",        "init"},
                         why);
}

Result<BatchShares> batch_shares(const Settings& settings, const Cluster* cluster) {
  return parse_shares(settings.text("batch-shares"), cluster);
}

Result<TrainSpec> virtual_train_spec(const Settings& settings, const Cluster& cluster) {
  auto task = virtual_training_spec(settings);
  if (!task) {
    return task.error();
  }
  auto optimizer = optimizer_spec(settings);
  if (!optimizer) {
    return optimizer.error();
  }
  auto record = record_spec(settings, {{.key = "profile", .name = "profile.json"},
                                       {.key = "cluster", .name = "cluster.toml"}});
  if (!record) {
    return record.error();
  }
  auto shares = batch_shares(settings, &cluster);
  if (!shares) {
    return shares.error();
  }
  auto asked = strategy_spec(settings);
  if (!asked) {
    return asked.error();
  }
  StrategySpec strategy = *std::move(asked);
  if (cluster.allreduce) {
    strategy.strategy.collective.reset();  // the table stands in for it
  }
  const Topology& topology = cluster.topology;
  return TrainSpec{.strategy = std::move(strategy),
                   .hosts = {.workers = topology.workers(),
                             .workers_per_host = topology.workers_per_host(),
                             .servers = topology.servers_apart() ? topology.servers() : 0,
                             .servers_per_host = topology.servers_per_host()},
                   .work = *std::move(task),
                   .shares = *std::move(shares),
                   .length = {.epochs = settings.integer("epochs"),
                              .iterations = settings.integer("iterations"),
                              .evaluate_every = settings.integer("evaluate-every")},
                   .optimizer = *std::move(optimizer),
                   .on_nonfinite = *value_of(kNonFiniteNames, settings.text("on-nonfinite")),
                   .record = *std::move(record),
                   .save = settings.text("save")};
}

Result<TrainSpec> train_spec(const Settings& settings) {
  auto work = work_spec(settings);
  if (!work) {
    return work.error();
  }
  auto strategy = strategy_spec(settings);
  if (!strategy) {
    return strategy.error();
  }
  auto optimizer = optimizer_spec(settings);
  if (!optimizer) {
    return optimizer.error();
  }
  std::vector<Copied> copied;
  const auto* replay = std::get_if<ProfileSpec>(&*work);
  const bool has_cluster = replay != nullptr && replay->cluster;
  if (replay != nullptr) {
    copied.push_back({.key = "model", .name = "profile.json", .prefix = kReplay});
  }
  if (has_cluster) {
    copied.push_back({.key = "cluster", .name = "cluster.toml"});
  }
  auto shares = batch_shares(settings, has_cluster ? &*replay->cluster : nullptr);
  if (!shares) {
    return shares.error();
  }
  if (replay != nullptr && shares->by_speed) {
    return Error(
        "batch-shares: auto takes the speeds of a replay from --cluster, which is "
        "missing");
  }
  auto record = record_spec(settings, copied);
  if (!record) {
    return record.error();
  }
  return TrainSpec{.strategy = *std::move(strategy),
                   .hosts = {.workers = size_of(settings, "workers"),
                             .workers_per_host = size_of(settings, "workers-per-host"),
                             .servers = servers_apart(settings).servers,
                             .servers_per_host = size_of(settings, "servers-per-host")},
                   .work = *std::move(work),
                   .shares = *std::move(shares),
                   .length = {.epochs = settings.integer("epochs"),
                              .iterations = settings.integer("iterations"),
                              .evaluate_every = settings.integer("evaluate-every")},
                   .optimizer = *std::move(optimizer),
                   .on_nonfinite = *value_of(kNonFiniteNames, settings.text("on-nonfinite")),
                   .record = *std::move(record),
                   .save = settings.text("save")};
}

}  // namespace sluice::cli
