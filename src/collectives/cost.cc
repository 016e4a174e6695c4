#include "collectives/cost.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/aggregation_groups.h"

namespace sluice {
namespace {

// Messages of one machine in one direction.
struct Flow {
  double messages = 0;
  double moved = 0;

  void add(const Load& load) {
    messages += load.messages;
    moved += load.moved;
  }
};

// Of a full-duplex link only the busier direction counts.
Load busier(const Flow& out, const Flow& in) {
  return {.messages = std::max(out.messages, in.messages), .moved = std::max(out.moved, in.moved)};
}

// The load of what the ranks of one machine do in a step.
class StepCount {
 public:
  StepCount(std::size_t per_machine, std::int64_t whole)
      : per_machine_(per_machine), whole_(static_cast<double>(whole)) {}

  void add(std::span<const Round> rounds) {
    bool receives = false;
    bool waits = false;  // for another machine
    for (const Round& round : rounds) {
      out_.add(load_of(round.send));
      const Load in = load_of(round.receive);
      in_.add(in);
      added_ += round.reduce && round.receive ? share_of(*round.receive) : 0;
      receives = receives || round.receive;
      waits = waits || in.messages > 0;
    }
    receivers_ += receives ? 1 : 0;
    waiters_ += waits ? 1 : 0;
  }

  // Ranks that receive within the machine wait for no start-up, so that of the chain of messages
  // from rank to rank only a part has one.
  Load load() const {
    Load load = busier(out_, in_);
    load.startups = receivers_ > 0 ? waiters_ / receivers_ : load.messages > 0 ? 1 : 0;
    load.added = added_;
    return load;
  }
  const Flow& out() const { return out_; }
  const Flow& in() const { return in_; }

 private:
  double share_of(const Transfer& transfer) const {
    return static_cast<double>(transfer.range.size()) / whole_;
  }
  Load load_of(const std::optional<Transfer>& transfer) const {
    const bool leaves = transfer && transfer->peer >= per_machine_;
    return leaves ? Load{.messages = 1, .moved = share_of(*transfer)} : Load{};
  }

  std::size_t per_machine_;
  double whole_;
  Flow out_;
  Flow in_;
  double added_ = 0;
  double receivers_ = 0;
  double waiters_ = 0;
};

// What a rank packs and unpacks, as CollectiveRunner does it: what it sends to several is packed
// once, and what it passes on unchanged is not packed again.
class PackingCount {
 public:
  // Elements, in a step.
  std::int64_t step(std::span<const Round> rounds) {
    std::int64_t elements = 0;
    for (const Round& round : rounds) {
      const std::optional<Range> out = round.send ? round.send->range : round.shared;
      const bool as_it_is = out && !round.reduce && packed_ == *out;
      if (out && !as_it_is && out != last_in_step_) {
        elements += out->size();
        last_in_step_ = out;
      }
    }
    if (last_in_step_) {
      packed_ = *std::exchange(last_in_step_, std::nullopt);
    }
    for (const Round& round : rounds) {
      if (round.receive) {
        elements += round.receive->range.size();
        packed_ = round.reduce ? Range{} : round.receive->range;
      }
    }
    return elements;
  }

 private:
  Range packed_;  // of which the rank has the code
  std::optional<Range> last_in_step_;
};

double us_of(const Load& load, const LinkCost& link, double bytes) {
  return load.messages * to_us(link.message) + load.moved * bytes * link.ns_per_byte / 1e3;
}

// On one thread: what is unpacked is added in the same pass.
double arithmetic_us_of(const Load& load, const LinkCost& link, double bytes, double floats) {
  return (floats > 0 ? load.coded * floats * link.code_ns_per_byte
                     : load.added * bytes * link.reduce_ns_per_byte) /
         1e3;
}

}  // namespace

Ranks ranks_of(const Job& job) {
  const AggregationGroups groups(job);
  const std::size_t per_machine =
      job.topology.on_one_machine() ? 1 : job.topology.workers_per_machine() / groups.group();
  return {groups.size(), std::min(per_machine, groups.size())};
}

// The first machine is as busy as any: it has the longest parts and the root of the tree, and ranks
// beyond a power of two fold into it first.
PlanLoad load_of(Collective collective, const Ranks& ranks) {
  check(ranks.size > 0 && ranks.per_machine > 0, "a collective needs at least one rank");
  // So long that all parts of the plans are equal.
  const auto whole = static_cast<std::int64_t>(ranks.size * std::bit_ceil(ranks.size));
  std::vector<Plan> plans;
  std::vector<PackingCount> packing;
  for (std::size_t rank = 0; rank < ranks.per_machine; ++rank) {
    plans.push_back(make_plan(collective, rank, ranks.size, {0, whole}));
    packing.emplace_back();
  }
  PlanLoad load;
  Flow out;
  Flow in;
  for (std::size_t first = 0; first < plans.front().size();) {
    const std::size_t end = end_of_step(plans.front(), first);
    StepCount step(ranks.per_machine, whole);
    std::int64_t coded = 0;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const auto rounds = std::span(plans[rank]).subspan(first, end - first);
      step.add(rounds);
      coded += packing[rank].step(rounds);
    }
    Load each = step.load();
    each.coded = static_cast<double>(coded) / static_cast<double>(whole);
    if (!load.steps.empty() && load.steps.back().each == each) {
      ++load.steps.back().count;
    } else {
      load.steps.push_back({each});
    }
    load.total.startups += each.startups;
    load.total.added += each.added;
    load.total.coded += each.coded;
    out.add({.messages = step.out().messages, .moved = step.out().moved});
    in.add({.messages = step.in().messages, .moved = step.in().moved});
    first = end;
  }
  const Load link = busier(out, in);
  load.total.messages = link.messages;
  load.total.moved = link.moved;
  return load;
}

AllReduceCost collective_cost(const PlanLoad& load, const LinkCost& link) {
  double startup_us = 0;
  double ns_per_byte = 0;
  for (const auto& [each, count] : load.steps) {
    startup_us += count * (each.startups * to_us(link.startup) + us_of(each, link, 0));
    ns_per_byte += count * (each.moved * link.ns_per_byte + each.added * link.reduce_ns_per_byte);
  }
  return {from_us(startup_us), ns_per_byte};
}

// Segments go through the same steps one behind the other. So a step takes until its messages of
// all segments have left, or until that of the first segment has arrived and been added, whichever
// is longer. Packing is arithmetic too, which several threads do for different segments.
SumCost sum_cost(const PlanLoad& load, const LinkCost& link, Bytes bytes, std::size_t segments,
                 const Coding& coding) {
  const auto many = static_cast<double>(segments);
  const auto threads = static_cast<double>(coding.threads);
  const double each_bytes = static_cast<double>(bytes) / many;
  const double each_floats = static_cast<double>(coding.floats) / many;
  const auto arithmetic_us = [&](const Load& of) {
    return arithmetic_us_of(of, link, each_bytes, each_floats);
  };
  const double busy =
      many * std::max(us_of(load.total, link, each_bytes), arithmetic_us(load.total) / threads);
  double alone = segments > 1 ? to_us(link.startup) : 0;
  for (const auto& [each, count] : load.steps) {
    const double first =
        each.startups * (to_us(link.startup) + us_of(each, link, each_bytes)) + arithmetic_us(each);
    alone += count * std::max(first, many * us_of(each, link, each_bytes));
  }
  return {.alone = from_us(std::max(alone, busy)), .busy = from_us(busy)};
}

Bytes bytes_sent(Collective collective, std::size_t size, Bytes bytes) {
  check(size > 0, "a collective needs at least one rank");
  if (collective != Collective::kRecursiveDoubling) {
    return 2 * static_cast<Bytes>(size - 1) * bytes;
  }
  const std::size_t power = std::bit_floor(size);
  const auto levels = static_cast<std::size_t>(std::countr_zero(power));
  return static_cast<Bytes>(power * levels + 2 * (size - power)) * bytes;
}

}  // namespace sluice
