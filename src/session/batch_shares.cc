#include "session/batch_shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "drivers/realtime/start_thread.h"
#include "session/sweep.h"

namespace sluice {
namespace {

// How long a step of this worker takes: the shortest of a few.
double step_seconds(const LearnerFactory& factory, std::size_t rank) {
  constexpr Iteration kSteps = 4;
  const Clock clock;
  const std::unique_ptr<Learner> learner = factory(rank);
  NoHooks hooks;
  double shortest = std::numeric_limits<double>::infinity();
  for (Iteration i = 0; i < kSteps; ++i) {
    const Time begin = clock.now();
    learner->step(i, hooks);
    shortest = std::min(shortest, to_seconds(clock.now() - begin));
  }
  return std::max(shortest, 1e-9);
}

}  // namespace

Result<BatchShares> parse_shares(const std::string& text, const Cluster* cluster) {
  if (text == "equal") {
    return BatchShares();
  }
  if (text == "auto") {
    return cluster == nullptr ? BatchShares{.by_speed = true}
                              : BatchShares{.by_speed = false, .parts = shares_by_speed(*cluster)};
  }
  BatchShares shares;
  for (const std::string& word : split_list(text)) {
    const double share = number_in(word).value_or(0);
    if (!(share >= 1e-6 && share <= 1e6)) {
      return Error(fmt::format(
          "batch-shares: \"{}\" in \"{}\"; expected equal, auto, or a positive number for each "
          "worker with commas between them, such as 2,2,1",
          word, text));
    }
    shares.parts.push_back(share);
  }
  return shares;
}

Result<void> check_shares(const BatchShares& shares, const Strategy& strategy,
                          std::size_t workers) {
  if (shares.equal()) {
    return {};
  }
  const AlgorithmTraits& algorithm = traits_of(strategy.algorithm);
  if (algorithm.sends != Sends::kGradients) {
    return Error(fmt::format(
        "batch-shares: with algorithm {} workers take steps of their own and average parameters, "
        "in which a batch has no weight; leave it out, or take an algorithm that sends gradients",
        algorithm.name));
  }
  if (!shares.by_speed && shares.parts.size() != workers) {
    return Error(fmt::format("batch-shares: has {} shares for {} workers; give one for each",
                             shares.parts.size(), workers));
  }
  return {};
}

std::vector<double> shares_by_speed(const Cluster& cluster) {
  std::vector<double> shares;
  for (std::size_t w = 0; w < cluster.topology.workers(); ++w) {
    shares.push_back(1 / cluster.slowdown(w));
  }
  return shares;
}

std::vector<double> compute_factors(const std::vector<double>& shares) {
  const double mean =
      std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
  std::vector<double> factors;
  for (const double share : shares) {
    factors.push_back(share / mean);
  }
  return factors;
}

std::vector<double> measured_shares(ProcessGroup& group, const Topology& topology,
                                    const LearnerFactory& factory) {
  const std::vector<std::size_t> ranks = workers_here(group, topology);
  std::vector<double> seconds(ranks.size());
  {
    std::vector<std::exception_ptr> errors(ranks.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      threads.push_back(start_thread([&, i] {
        try {
          seconds[i] = step_seconds(factory, ranks[i]);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      }));
    }
    threads.clear();
    for (const std::exception_ptr& error : errors) {
      if (error) {
        std::rethrow_exception(error);
      }
    }
  }
  const std::vector<std::string> all =
      group.to_leader(nlohmann::json(seconds).dump(), "the times of steps");
  std::vector<double> speeds;
  for (const std::string& own : all) {
    for (const double time : nlohmann::json::parse(own).get<std::vector<double>>()) {
      speeds.push_back(1 / time);
    }
  }
  const std::string agreed =
      group.from_leader(nlohmann::json(speeds).dump(), "the shares of the batch");
  auto shares = nlohmann::json::parse(agreed).get<std::vector<double>>();
  check(shares.size() == topology.workers(), "every worker has a share");
  return shares;
}

std::string text_of_shares(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::string> texts;
  for (const double share : shares) {
    texts.push_back(fmt::format("{:.1f}", 100 * share / sum));
  }
  return fmt::format("{} %", fmt::join(texts, ", "));
}

}  // namespace sluice
