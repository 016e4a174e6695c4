#include "cli/setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "cli/optimizer_settings.h"
#include "cli/setting_table.h"
#include "nodes/presets.h"

namespace sluice::cli {
namespace {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

// Visits the axes that are words: key, help, names of the values, member of the strategy.
template <class Visit>
void for_each_axis(Visit visit) {
  visit("algorithm", "how the workers stay in step", kAlgorithmNames, &Strategy::algorithm);
  visit("exchange", "how gradients become parameters", kExchangeNames, &Strategy::exchange);
  visit("partition", "how the parameters are cut into chunks", kPartitionNames,
        &Strategy::partition);
  visit("order", "which chunk leaves a host first", kOrderNames, &Strategy::order);
  visit("codec",
        "how gradients are compressed; auto: what is predicted to be fastest of none, bf16 and "
        "--allow-codecs",
        kCodecNames, &Strategy::codec);
}

// Visits the plain values of codec dgc: key, form, help, access to the value in a strategy.
template <class Visit>
void for_each_dgc_value(Visit visit) {
  visit(
      "sparsity", Form::number(0, 0.999999), "dgc: share of each gradient that is not sent",
      [](auto& s) -> auto& { return s.dgc.sparsity; });
  visit(
      "dgc-accumulation", Form::on_or_off(), "dgc: accumulate what is not sent until it is",
      [](auto& s) -> auto& { return s.dgc.accumulation; });
  visit(
      "dgc-momentum-correction", Form::on_or_off(), "dgc: accumulate velocities, not gradients",
      [](auto& s) -> auto& { return s.dgc.momentum_correction; });
  visit(
      "dgc-clipping", Form::on_or_off(), "dgc: clip the local gradient of each worker",
      [](auto& s) -> auto& { return s.dgc.clipping; });
  visit(
      "dgc-factor-masking", Form::on_or_off(), "dgc: reset the velocity of what has been sent",
      [](auto& s) -> auto& { return s.dgc.factor_masking; });
  visit(
      "dgc-warmup", Form::on_or_off(), "dgc: raise the sparsity over the first four epochs",
      [](auto& s) -> auto& { return s.dgc.warm_up; });
  visit(
      "dgc-clip-norm", Form::number(0, 1e9), "dgc: maximum norm of the mean gradient of a layer",
      [](auto& s) -> auto& { return s.dgc.clip_norm; });
}

// The same for codec top-k.
template <class Visit>
void for_each_top_k_value(Visit visit) {
  visit(
      "top-k-block", Form::integer(1, 1 << 24), "top-k: values of which the largest are sent",
      [](auto& s) -> auto& { return s.top_k.block; });
  visit(
      "top-k-kept", Form::integer(1, 1 << 24), "top-k: number of values of a block that are sent",
      [](auto& s) -> auto& { return s.top_k.kept; });
  visit(
      "top-k-bits", Form::integer(2, 32), "top-k: bits of a value that is sent, 2 or 32",
      [](auto& s) -> auto& { return s.top_k.bits; });
}

// The same for codec powersgd.
template <class Visit>
void for_each_power_value(Visit visit) {
  visit(
      "power-rank", Form::integer(1, 1024), "powersgd: rank of the factors of a matrix",
      [](auto& s) -> auto& { return s.power_rank; });
}

// The same for how often workers exchange.
template <class Visit>
void for_each_cadence_value(Visit visit) {
  visit(
      "every", Form::integer(1, kMaxCount),
      "local-steps: local steps between two exchanges of a worker's parameters",
      [](auto& s) -> auto& { return s.cadence.every; });
  visit(
      "synchronous-first", Form::integer(0, kMaxCount),
      "local-steps: number of synchronous iterations at the start",
      [](auto& s) -> auto& { return s.cadence.synchronous; });
  visit(
      "outer-rate", Form::number(0, 1e3), "local-steps: learning rate of the outer step",
      [](auto& s) -> auto& { return s.cadence.rate; });
  visit(
      "outer-momentum", Form::number(0, 1), "local-steps, outer nesterov: its momentum",
      [](auto& s) -> auto& { return s.cadence.momentum; });
  visit(
      "outer-pull", Form::number(0, 1e3),
      "local-steps, exchange gossip: rate towards the mean global parameters of a pair",
      [](auto& s) -> auto& { return s.cadence.pull; });
  visit(
      "fragments", Form::integer(1, kMaxCount),
      "local-steps: parts of the model that are exchanged in turn, each once in --every",
      [](auto& s) -> auto& { return s.cadence.fragments; });
  visit(
      "outer-delay", Form::integer(0, kMaxCount),
      "local-steps: the outer step follows so many local steps after its exchange began",
      [](auto& s) -> auto& { return s.cadence.delay; });
  visit(
      "outer-mix", Form::number(0, 1),
      "local-steps: share of its own parameters that a worker keeps after an outer step",
      [](auto& s) -> auto& { return s.cadence.mix; });
}

// The same for all plain values of a strategy.
template <class Visit>
void for_each_value(Visit visit) {
  const Form count = Form::integer(1, kMaxCount);
  visit(
      "slice", count, "partition slice: maximum number of parameters in a slice",
      [](auto& s) -> auto& { return s.slice_params; });
  visit(
      "kvstore-split", count,
      "partition kvstore: layers with at least this many parameters are split over all servers",
      [](auto& s) -> auto& { return s.kvstore_split_params; });
  visit(
      "credit", count, "order priority: maximum bytes in flight from a host",
      [](auto& s) -> auto& { return s.credit; });
  visit(
      "peer-credit", count, "maximum bytes in flight from a host to each other host",
      [](auto& s) -> auto& { return s.peer_credit; });
  visit(
      "segment", Form::integer(0, kMaxCount),
      "all-reduce: maximum number of parameters in a message; longer chunks are summed in "
      "segments; "
      "0: no limit",
      [](auto& s) -> auto& { return s.segment_params; });
  visit(
      "local-aggregation", Form::on_or_off(),
      "sum the gradients of the workers of a machine before they leave it; processes also do so "
      "where that is predicted to pay, unless told not to",
      [](auto& s) -> auto& { return s.local_aggregation; });
  visit(
      "error-feedback", Form::on_or_off(),
      "all codecs but dgc: add what the codec loses to the next gradient",
      [](auto& s) -> auto& { return s.error_feedback; });
  visit(
      "error-feedback-decay", Form::number(0, 1),
      "error feedback: factor of what earlier gradients have lost",
      [](auto& s) -> auto& { return s.feedback_decay; });
  for_each_dgc_value(visit);
  for_each_top_k_value(visit);
  for_each_power_value(visit);
  visit(
      "staleness", Form::integer(0, kMaxCount),
      "ssp: maximum number of iterations by which a worker may be ahead of the slowest",
      [](auto& s) -> auto& { return s.staleness; });
  visit(
      "period", count, "easgd: iterations between two exchanges with the server",
      [](auto& s) -> auto& { return s.period; });
  visit(
      "elasticity", Form::number(0, 1),
      "easgd: moving rate towards the parameters of the server; 0: 0.9 / workers",
      [](auto& s) -> auto& { return s.elasticity; });
  visit(
      "gossip-probability", Form::number(0, 1),
      "gosgd: probability that a worker sends its parameters after an iteration",
      [](auto& s) -> auto& { return s.gossip_probability; });
  visit(
      "pipeline-depth", Form::integer(1, 64),
      "pipe-sgd: an update uses the gradient from this many iterations before",
      [](auto& s) -> auto& { return s.pipeline_depth; });
  visit(
      "pipeline-warmup", Form::integer(0, kMaxCount),
      "pipe-sgd: number of synchronous iterations at the start",
      [](auto& s) -> auto& { return s.pipeline_warmup; });
  for_each_cadence_value(visit);
}

// The value of a word that its form has accepted.
template <class NameTable>
auto known(const NameTable& names, const std::string& word) {
  const auto value = value_of(names, word);
  check(value.has_value(), "a word has a known value");
  return *value;
}

std::vector<Setting> strategy_settings() {
  const Strategy strategy;
  std::vector<Setting> all{{"preset", kRuns, Form::word(preset_names()), "p3",
                            "a named way to synchronise; \"sluice presets\" explains them"}};
  for_each_axis([&](const char* key, const char* help, const auto& names, auto member) {
    const bool chosen_by_cost = std::string_view(key) == "codec";
    all.push_back({key, kRuns,
                   Form::word(chosen_by_cost ? words_or("auto", names) : words_of(names)),
                   name_of(names, strategy.*member), help});
  });
  for_each_value([&](const char* key, const Form& form, const char* help, auto access) {
    all.push_back({key, kRuns, form, access(strategy), help});
  });
  all.push_back({"outer", kRuns, Form::word(words_of(kOuterNames)),
                 name_of(kOuterNames, strategy.cadence.outer),
                 "local-steps: optimiser of the outer step; elastic is algorithm easgd"});
  all.push_back({"allow-codecs", kRuns, Form::text(), "",
                 "codec auto: further codecs to choose from, such as quantise8,quantise4"});
  all.push_back({"merge", kRuns, Form::word(words_of(kMergeNames)),
                 name_of(kMergeNames, strategy.merge),
                 "partition merged: the best groups of layers, or those of MG-WFBP's greedy rule"});
  all.push_back(
      {"update", kRuns, Form::word(words_or("auto", kUpdateNames)), "auto",
       "who updates the parameters: server, or worker with the sum that servers return; "
       "auto: the workers with a dense codec, which packs sums; else the servers, if any"});
  all.push_back({"deal", kRuns, Form::word({"staggered", "round-robin"}), "staggered",
                 "staggered: each worker starts a layer with a different chunk"});
  all.push_back({"collective", kRuns, Form::word(words_or("auto", kCollectiveNames)), "auto",
                 "algorithm of an all-reduce; auto: the cheapest for each chunk; native: "
                 "MPI_Allreduce; shared-memory: for processes on one machine"});
  return all;
}

// The names of a setting in other programs.
struct Alias {
  std::string_view word;
  std::string_view key;
};
constexpr std::array kAliases{
    Alias{"learning-rate", "lr"},      Alias{"batch-size", "batch"},
    Alias{"num-workers", "workers"},   Alias{"world-size", "workers"},
    Alias{"num-epochs", "epochs"},     Alias{"steps", "iterations"},
    Alias{"max-steps", "iterations"},  Alias{"dataset", "data"},
    Alias{"data-path", "data-dir"},    Alias{"compression", "codec"},
    Alias{"wd", "weight-decay"},       Alias{"warmup", "warmup-epochs"},
    Alias{"scheduler", "lr-schedule"}, Alias{"optim", "optimizer"},
    Alias{"betas", "beta1"},           Alias{"eps", "epsilon"},
    Alias{"grad-clip", "clip-norm"},   Alias{"max-grad-norm", "clip-norm"},
    Alias{"gpus", "device"},           Alias{"output", "run"},
    Alias{"verbose", "log-level"},     Alias{"sync-every", "every"},
    Alias{"outer-lr", "outer-rate"},   Alias{"outer-codec", "codec"},
};

}  // namespace

std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  const auto add = [&](const std::string& group, std::vector<Setting> settings) {
    for (Setting& setting : settings) {
      setting.group = group;
      all.push_back(std::move(setting));
    }
  };
  add("Synchronisation", strategy_settings());
  add("Model", model_settings());
  add("Cluster", cluster_settings());
  add("Cluster", launch_settings());
  add("Cluster", fault_settings());
  add("Data", data_settings());
  add("Optimiser", optimiser_settings());
  add("Optimiser", hyper_settings());
  add("Estimate", estimate_settings());
  add("Output", output_settings());
  return all;
}

std::vector<Setting> settings_of(Command command) {
  std::vector<Setting> settings = all_settings();
  std::erase_if(settings, [&](const Setting& setting) {
    return (setting.commands & static_cast<unsigned>(command)) == 0;
  });
  return settings;
}

std::string spelled(std::string_view key) {
  std::string spelled(key);
  std::ranges::replace(spelled, '_', '-');
  return spelled;
}

std::string suggested_key(std::string_view key, std::span<const std::string> keys,
                          const std::string& prefix) {
  const std::string word = spelled(key);
  const auto* alias = std::ranges::find(kAliases, word, &Alias::word);
  const bool aliased = alias != kAliases.end() && std::ranges::find(keys, alias->key) != keys.end();
  const std::string meant = aliased ? std::string(alias->key) : nearest(word, keys);
  return meant.empty() ? meant : fmt::format("; did you mean {}{}?", prefix, meant);
}

std::string value_name(const Setting& setting) {
  switch (setting.form.kind()) {
    case Form::Kind::kSwitch:
      return "";
    case Form::Kind::kInteger:
      return "INTEGER";
    case Form::Kind::kNumber:
      return "NUMBER";
    case Form::Kind::kWord:
      return fmt::format("{}", fmt::join(setting.form.words(), "|"));
    case Form::Kind::kText:
    case Form::Kind::kTable:
    case Form::Kind::kList:
      return "TEXT";
  }
  return "?";
}

std::string full_help(const Setting& setting) {
  if (setting.fallback.is_null()) {
    return setting.help + " (required)";
  }
  if (to_values(sluice::presets().front()).contains(setting.key)) {
    return setting.help + " [by preset]";
  }
  const bool is_switch = setting.form.kind() == Form::Kind::kSwitch;
  if (is_switch && setting.fallback == false) {
    return setting.help;
  }
  const std::string fallback =
      setting.fallback.is_string() ? setting.fallback.get<std::string>() : setting.fallback.dump();
  return fallback.empty() ? setting.help : setting.help + " [" + fallback + "]";
}

Json to_values(const Strategy& strategy) {
  Json values{{"merge", name_of(kMergeNames, strategy.merge)},
              {"outer", name_of(kOuterNames, strategy.cadence.outer)},
              {"deal", strategy.staggered ? "staggered" : "round-robin"},
              {"collective", strategy.collective ? name_of(kCollectiveNames, *strategy.collective)
                                                 : std::string_view("auto")},
              {"update", strategy.update ? name_of(kUpdateNames, *strategy.update)
                                         : std::string_view("auto")}};
  for_each_value([&](const char* key, const Form&, const char*, auto access) {
    values[key] = access(strategy);
  });
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    values[key] = name_of(names, strategy.*member);
  });
  return values;
}

Json to_values(const Preset& preset) {
  Json values = to_values(preset.strategy);
  values["lr"] = preset.lr;
  values["weight-decay"] = preset.weight_decay();
  if (preset.optimizer != Optimizer::kSgd) {
    values["optimizer"] = traits_of(preset.optimizer).name;
  }
  return values;
}

Strategy to_strategy(const Json& values) {
  Strategy strategy;
  strategy.merge = known(kMergeNames, values.at("merge"));
  strategy.cadence.outer = known(kOuterNames, values.at("outer"));
  strategy.staggered = values.at("deal") == "staggered";
  strategy.collective = value_of(kCollectiveNames, values.at("collective").get<std::string>());
  strategy.update = value_of(kUpdateNames, values.at("update").get<std::string>());
  strategy.seed = values.at("seed");
  for_each_value([&](const char* key, const Form&, const char*, auto access) {
    values.at(key).get_to(access(strategy));
  });
  for_each_axis([&](const char* key, const char*, const auto& names, auto member) {
    const std::string word = values.at(key);
    strategy.*member = word == "auto" ? strategy.*member : known(names, word);
  });
  return strategy;
}

}  // namespace sluice::cli
