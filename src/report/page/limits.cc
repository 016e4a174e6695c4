#include "report/page/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice {
namespace {

// Less than this share of an iteration is not worth an effort.
constexpr double kNegligible = 0.1;
// A link that is used more has no room left for what could be sent earlier.
constexpr double kFull = 0.85;

double share(double part, const IterationTimes& times) {
  return times.total() > 0 ? part / times.total() : 0;
}

std::string percent(double part) { return fmt::format("{:.0f} %", part * 100); }

// How long workers of a run waited for one batch.
double loading_us(const RunData& run) {
  const double batches = run.number({"loading", "batches"}).value_or(0);
  const double waited = run.number({"loading", "waited_s"}).value_or(0);
  return batches > 0 && !run.is_virtual() ? waited / batches * 1e6 : 0;
}

// The largest of the waits.
Limit largest_wait(const IterationTimes& times) {
  const std::array<std::pair<double, Limit>, 4> waits{{{times.communication, Limit::kWaiting},
                                                       {times.others, Limit::kOthers},
                                                       {times.aggregation, Limit::kAggregation},
                                                       {times.loading, Limit::kLoading}}};
  return std::ranges::max_element(waits, {}, [](const auto& wait) { return wait.first; })->second;
}

std::string link_text(const LimitFigures& figures) {
  return figures.link_use
             ? fmt::format(" The busiest link is used at {}.", percent(*figures.link_use))
             : "";
}

Statement compute_statement(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  const double waits = times.communication + times.others + times.aggregation;
  return {"Compute limits this run.",
          {fmt::format("{} of an iteration computes, and {} waits for other machines.",
                       percent(share(times.compute, times)), percent(share(waits, times))),
           "Faster processors, a smaller model or more workers would help. A faster network, fewer "
           "bytes or another order of messages would gain little."}};
}

Statement bandwidth_statement(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  return {"Communication limits this run: the links are full.",
          {fmt::format("{} of an iteration waits for the network.{}",
                       percent(share(times.communication, times)), link_text(figures)),
           "Fewer bytes (a codec, or exchanging less often) or a faster link would help. Another "
           "order of messages would not."}};
}

Statement waiting_statement(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  const std::string waits =
      fmt::format("{} of an iteration waits for the network.{}",
                  percent(share(times.communication, times)), link_text(figures));
  if (!figures.link_use) {
    return {"Communication limits this run.",
            {waits,
             "Whether links are full is not known here: \"sluice simulate\" with a cluster "
             "file tells, and \"sluice doctor --net\" measures the links."}};
  }
  return {"Communication limits this run, but the links have room.",
          {waits,
           figures.has_priority
               ? "Urgent messages go first already. Fewer bytes (a codec) or a faster link would "
                 "shorten the waits; if they do not, it is latency, the length of messages "
                 "(--slice, --credit) or a slow peer, which \"sluice doctor --net\" finds."
               : "Messages come late or in the wrong order: sending slices by priority (preset p3, "
                 "or p3-allreduce) hides more of them behind compute. Fewer bytes or a faster link "
                 "would help too."}};
}

// What a worker waits for while its link is idle, and what would help.
struct OtherWait {
  const char* headline;
  const char* what;
  const char* help;
};

OtherWait other_wait(std::optional<Algorithm> algorithm) {
  const Coupling coupling = algorithm ? traits_of(*algorithm).coupling : Coupling::kLockStep;
  switch (coupling) {
    case Coupling::kLockStep:
    case Coupling::kPipelined:
      return {"Slow workers limit this run.", "for gradients of other workers",
              "Machines of equal speed and load would help, shares of the batch by speed "
              "(--batch-shares auto), or a preset that does not wait for the slowest (asp, ssp, "
              "ad-psgd). A faster link would not."};
    case Coupling::kBounded:
      if (traits_of(*algorithm).sends == Sends::kOuterGradients) {
        return {
            "Slow workers limit this run.", "for the outer gradients of others",
            "Machines of equal speed and load, a larger --every or an --outer-delay would help. "
            "A faster link would not."};
      }
      return {"Slow workers limit this run.", "for workers that are too far behind",
              "Machines of equal speed and load or a larger --staleness would help. A faster link "
              "would not."};
    case Coupling::kFree:
      break;
  }
  if (traits_of(*algorithm).exchanges.contains(Exchange::kGossip)) {
    return {"Busy hosts limit this run.",
            "until its own host has mixed in what peers have sent (with ad-psgd, also for the "
            "partner's answer to a swap), and for no gradient of others,",
            "More cores for each worker would help, or exchanging less often. A faster link would "
            "not."};
  }
  return {"Busy servers limit this run.", "for the servers' answers, and for no other worker,",
          "More servers (--servers), more cores for them, or exchanging less often would help. A "
          "faster link would not."};
}

Statement others_statement(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  const OtherWait wait = other_wait(figures.algorithm);
  return {wait.headline,
          {fmt::format("{} of an iteration waits {} while the own link is idle.{}",
                       percent(share(times.others, times)), wait.what, link_text(figures)),
           wait.help}};
}

Statement aggregation_statement(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  return {"Sums and updates limit this run.",
          {fmt::format("{} of an iteration waits for arithmetic on gradients and parameters.{}",
                       percent(share(times.aggregation, times)), link_text(figures)),
           "More servers (--servers), more cores for them, or all-reduce would help. A faster link "
           "would not."}};
}

Statement loading_statement(const LimitFigures& figures) {
  return {"Loading limits this run.",
          {fmt::format("{} of an iteration waits for its batch.",
                       percent(share(figures.times.loading, figures.times))),
           "More threads that load (--loaders), faster storage or smaller images would help. "
           "Another way to synchronise would not."}};
}

Statement words_for(Limit limit, const LimitFigures& figures) {
  switch (limit) {
    case Limit::kUnknown:
      return {"The run was too short to say what limits it.", {}};
    case Limit::kCompute:
      return compute_statement(figures);
    case Limit::kBandwidth:
      return bandwidth_statement(figures);
    case Limit::kWaiting:
      return waiting_statement(figures);
    case Limit::kOthers:
      return others_statement(figures);
    case Limit::kAggregation:
      return aggregation_statement(figures);
    case Limit::kLoading:
      return loading_statement(figures);
  }
  return {};
}

// What perfect overlap would gain, and what order alone could.
void add_ceilings(const LimitFigures& figures, Statement& statement) {
  const double total = figures.times.total();
  const double compute = figures.times.compute;
  if (compute > 0 && total > compute * (1 + kNegligible)) {
    statement.sentences.push_back(fmt::format(
        "Without any waiting an iteration would take {:.4g} instead of {:.4g} ms: {:.2f} "
        "times the speed.",
        compute / 1000, total / 1000, total / compute));
  }
  // A bound by compute alone says no more than the sentence before.
  if (figures.bound_us && *figures.bound_us > compute * (1 + kNegligible) && total > 0) {
    statement.sentences.push_back(fmt::format(
        "No order of messages could take less than {:.4g} ms on these links; the run "
        "is {:.0f} % above this bound.",
        *figures.bound_us / 1000, std::max(0.0, 100 * (total / *figures.bound_us - 1))));
  }
}

}  // namespace

std::optional<IterationTimes> iteration_times(const RunData& run) {
  const auto part = [&](const char* key) {
    return std::max(0.0, run.number({"breakdown", key}).value_or(0));
  };
  IterationTimes times{
      .compute = part("computation_us"),
      .communication = part("communication_exposed_us"),
      .others = part("global_aggregation_wait_us"),
      .aggregation = part("local_aggregation_us") + part("global_aggregation_work_us")};
  if (times.total() <= 0) {
    return std::nullopt;
  }
  const double left = run.number({"iteration_us"}).value_or(0) - times.total();
  times.loading = std::clamp(loading_us(run), 0.0, std::max(0.0, left));
  times.rest = std::max(0.0, left - times.loading);
  return times;
}

std::optional<double> link_use(const RunData& run) {
  const auto mean = run.number({"egress_utilisation"});
  double use = std::max(mean.value_or(0), run.number({"ingress_utilisation"}).value_or(0));
  const double seconds = run.number({"train_s"}).value_or(0);
  const auto gbps = run.number({"network", "gbps"});
  const auto hosts = run.summary.find("by_host");
  if (seconds <= 0 || hosts == run.summary.end() || !hosts->is_array() ||
      (!gbps && !run.is_virtual())) {
    return mean ? std::optional(std::clamp(use, 0.0, 1.0)) : std::nullopt;
  }
  for (const auto& host : *hosts) {
    const auto at = [&](const char* key) {
      return host.is_object() && host.contains(key) && host[key].is_number()
                 ? host[key].get<double>()
                 : 0.0;
    };
    use = std::max(use, gbps ? at("sent_bytes") * 8 / (seconds * *gbps * 1e9)
                             : std::max(at("egress_busy_s"), at("ingress_busy_s")) / seconds);
  }
  return std::clamp(use, 0.0, 1.0);
}

Limit limit_of(const LimitFigures& figures) {
  const IterationTimes& times = figures.times;
  if (times.total() <= 0) {
    return Limit::kUnknown;
  }
  const double waits = times.communication + times.others + times.aggregation + times.loading;
  if (share(waits, times) < kNegligible) {
    return Limit::kCompute;
  }
  const Limit largest = largest_wait(times);
  const bool full = figures.link_use.value_or(0) >= kFull;
  return largest == Limit::kWaiting && full ? Limit::kBandwidth : largest;
}

Statement statement_of(const LimitFigures& figures) {
  Statement statement = words_for(limit_of(figures), figures);
  add_ceilings(figures, statement);
  return statement;
}

Statement limits_of(const RunData& run) {
  const auto setting = [&](const char* key) {
    const auto found = std::ranges::find(run.settings, key, &RunSetting::key);
    const std::string quoted = found == run.settings.end() ? "" : found->value;
    return quoted.size() < 2 ? quoted : quoted.substr(1, quoted.size() - 2);
  };
  return statement_of({.times = iteration_times(run).value_or(IterationTimes{}),
                       .link_use = link_use(run),
                       .bound_us = run.number({"bound_us"}),
                       .has_priority = setting("order") == "priority",
                       .algorithm = value_of(kAlgorithmNames, setting("algorithm"))});
}

}  // namespace sluice
