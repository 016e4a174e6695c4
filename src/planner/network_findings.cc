#include "planner/network_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/median.h"

namespace sluice {
namespace {

using Ranks = std::vector<std::size_t>;

// A network in which all machines have an interface, as an argument for mpirun.
std::string right_network(const std::vector<std::optional<RankInfo>>& ranks) {
  std::map<std::string, std::size_t> in;
  std::size_t known = 0;
  for (const auto& info : ranks) {
    std::set<std::string> networks;
    for (const Interface& interface : info ? info->interfaces : std::vector<Interface>{}) {
      networks.insert(interface.network());
    }
    for (const std::string& network : networks) {
      ++in[network];
    }
    known += info ? 1 : 0;
  }
  std::string common = "NETWORK";
  for (const auto& [network, count] : in) {
    common = count == known && !network.ends_with("/32") ? network : common;
  }
  return "mpirun --mca btl_tcp_if_include " + common;
}

// Derives all findings from a survey.
class Diagnosis {
 public:
  Diagnosis(const Survey& survey, std::span<const Link> links)
      : survey_(survey), advice_(right_network(survey.ranks)) {
    std::ranges::copy_if(links, std::back_inserter(links_), [&](const Link& link) {
      return !survey_.same_machine(link.from, link.to);
    });
  }

  std::vector<Finding> findings() {
    add_silent();
    add_shared_addresses();
    if (!links_.empty()) {
      add_slow();
      add_late();
      add_below_rate();
    }
    return std::move(findings_);
  }

 private:
  using Measure = std::function<double(const Link&)>;  // higher is worse

  void add_silent();
  void add_slow();
  void add_late();
  void add_below_rate();
  void add_shared_addresses();

  double usual(const Measure& badness) const;
  // Ranks whose links are all bad.
  Ranks bad_ranks(const Measure& badness, double limit) const;
  // Calls `say` for each bad rank with its worst link, and for each bad link between other ranks.
  void for_each_bad(
      const Measure& badness, double limit,
      const std::function<void(const Ranks&, const std::string& who, const Link&)>& say) const;
  std::string addresses(std::size_t rank) const;

  const Survey& survey_;
  std::string advice_;
  std::vector<Link> links_;  // between machines
  std::vector<Finding> findings_;
};

double Diagnosis::usual(const Measure& badness) const {
  std::map<std::size_t, double> best;
  for (const Link& link : links_) {
    for (const std::size_t rank : {link.from, link.to}) {
      const auto [entry, added] = best.try_emplace(rank, badness(link));
      entry->second = std::min(entry->second, badness(link));
    }
  }
  std::vector<double> values;
  for (const auto& [rank, value] : best) {
    values.push_back(value);
  }
  return median_of(std::move(values));
}

Ranks Diagnosis::bad_ranks(const Measure& badness, double limit) const {
  std::set<std::size_t> with_links;
  std::set<std::size_t> with_good_ones;
  for (const Link& link : links_) {
    with_links.insert({link.from, link.to});
    if (badness(link) < limit) {
      with_good_ones.insert({link.from, link.to});
    }
  }
  Ranks bad;
  std::ranges::set_difference(with_links, with_good_ones, std::back_inserter(bad));
  return bad;
}

void Diagnosis::for_each_bad(
    const Measure& badness, double limit,
    const std::function<void(const Ranks&, const std::string&, const Link&)>& say) const {
  const Ranks ranks = bad_ranks(badness, limit);
  const auto touches = [](const Link& link, std::size_t rank) {
    return link.from == rank || link.to == rank;
  };
  for (const std::size_t rank : ranks) {
    const Link* worst = nullptr;
    for (const Link& link : links_) {
      if (touches(link, rank) && (worst == nullptr || badness(link) > badness(*worst))) {
        worst = &link;
      }
    }
    say({rank}, survey_.name(rank) + ", to and from all others", *worst);
  }
  for (const Link& link : links_) {
    const bool named =
        std::ranges::any_of(ranks, [&](std::size_t rank) { return touches(link, rank); });
    if (badness(link) >= limit && !named) {
      say({link.from, link.to},
          fmt::format("from {} to {}", survey_.name(link.from), survey_.name(link.to)), link);
    }
  }
}

void Diagnosis::add_slow() {
  const auto ns_per_byte = [](const Link& link) { return 8 / link.gbps; };
  const double usual_gbps = 8 / usual(ns_per_byte);
  for_each_bad(
      ns_per_byte, kSlowFactor * 8 / usual_gbps,
      [&](const Ranks& ranks, const std::string& who, const Link& link) {
        const double factor = usual_gbps / link.gbps;
        findings_.push_back(
            {Finding::Kind::kSlow, ranks, factor,
             fmt::format("{}: {:.3g} Gb/s where {:.3g} is usual, {:.1f} times slower; check "
                         "the cable, the rate that the interface and the switch agreed "
                         "on, what else uses the link, and whether MPI uses the right "
                         "interface ({})",
                         who, link.gbps, usual_gbps, factor, advice_)});
      });
}

void Diagnosis::add_late() {
  const auto latency_us = [](const Link& link) { return to_us(link.min); };
  const double usual_us = usual(latency_us);
  for_each_bad(
      latency_us, std::max(kLateFactor * usual_us, usual_us + to_us(kLateBy)),
      [&](const Ranks& ranks, const std::string& who, const Link& link) {
        const double factor = to_us(link.min) / usual_us;
        findings_.push_back(
            {Finding::Kind::kLate, ranks, factor,
             fmt::format("{}: an empty message takes at least {:.0f} us where {:.0f} is usual, "
                         "{:.1f} times longer; check the route and whether MPI uses the "
                         "right interface ({})",
                         who, to_us(link.min), usual_us, factor, advice_)});
      });
}

// Finds machines whose best link is far slower than their fastest interface.
void Diagnosis::add_below_rate() {
  std::map<std::string, const Link*> best;  // by machine
  std::map<std::string, std::size_t> leader;
  for (const Link& link : links_) {
    for (const std::size_t rank : {link.from, link.to}) {
      const Link*& known = best[survey_.ranks[rank]->host];
      known = known == nullptr || link.gbps > known->gbps ? &link : known;
      leader.try_emplace(survey_.ranks[rank]->host, rank);
    }
  }
  for (const auto& [host, link] : best) {
    const auto& interfaces = survey_.ranks[leader[host]]->interfaces;
    const auto fastest = std::ranges::max_element(
        interfaces, {}, [](const Interface& i) { return i.gbps.value_or(0); });
    if (fastest == interfaces.end() || fastest->gbps.value_or(0) < kSlowFactor * link->gbps) {
      continue;
    }
    findings_.push_back(
        {Finding::Kind::kBelowRate,
         {leader[host]},
         *fastest->gbps / link->gbps,
         fmt::format(
             "{}: its interface {} can do {:.3g} Gb/s, but none of its links does more than "
             "{:.3g}; MPI may use another interface: mpirun --mca btl_tcp_if_include {}",
             host, fastest->name, *fastest->gbps, link->gbps, fastest->network())});
  }
}

std::string Diagnosis::addresses(std::size_t rank) const {
  const auto& info = survey_.ranks[rank];
  if (!info) {
    return fmt::format("unknown for rank {}", rank);
  }
  std::vector<std::string> texts;
  for (const Interface& interface : info->interfaces) {
    texts.push_back(fmt::format("{} {}/{}", interface.name, interface.address, interface.prefix));
  }
  return fmt::format("{} has {}", info->host,
                     texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
}

void Diagnosis::add_silent() {
  std::map<std::size_t, std::size_t> count;
  for (const auto& [a, b] : survey_.silent) {
    ++count[a];
    ++count[b];
  }
  const auto answers_nobody = [&](std::size_t rank) {
    return survey_.ranks.size() > 2 && count[rank] + 1 == survey_.ranks.size();
  };
  constexpr const char* kText =
      "{}: no answer came in time; a firewall may separate them, or MPI uses an interface "
      "that does not lead there: open all TCP ports between the hosts, or name the right network "
      "({}); addresses: {}";
  std::set<std::size_t> named;
  for (std::size_t r = 0; r < survey_.ranks.size(); ++r) {
    if (answers_nobody(r)) {
      named.insert(r);
      findings_.push_back(
          {Finding::Kind::kSilent,
           {r},
           0,
           fmt::format(kText, survey_.name(r) + " and all others", advice_, addresses(r))});
    }
  }
  for (const auto& [a, b] : survey_.silent) {
    if (!named.contains(a) && !named.contains(b)) {
      findings_.push_back({Finding::Kind::kSilent,
                           {a, b},
                           0,
                           fmt::format(kText, survey_.name(a) + " and " + survey_.name(b), advice_,
                                       addresses(a) + "; " + addresses(b))});
    }
  }
}

// Container bridges and the like: MPI may mistake an address of its own machine for a peer's.
void Diagnosis::add_shared_addresses() {
  std::map<std::string, std::map<std::string, std::size_t>>
      owners;  // by address and host: the host's first rank
  std::map<std::string, std::string> names;
  for (std::size_t r = 0; r < survey_.ranks.size(); ++r) {
    if (const auto& info = survey_.ranks[r]) {
      for (const Interface& interface : info->interfaces) {
        owners[interface.address].try_emplace(info->host, r);
        names[interface.address] = interface.name;
      }
    }
  }
  for (const auto& [address, hosts] : owners) {
    if (hosts.size() < 2) {
      continue;
    }
    Ranks ranks;
    std::vector<std::string> named;
    for (const auto& [host, rank] : hosts) {
      ranks.push_back(rank);
      named.push_back(host);
    }
    findings_.push_back(
        {Finding::Kind::kSharedAddress, ranks, 0,
         fmt::format("{} ({}) is an address of all of {}, and MPI may try to use it between "
                     "them; exclude it: mpirun --mca btl_tcp_if_exclude lo,{}",
                     address, names[address], fmt::join(named, ", "), names[address])});
  }
}

}  // namespace

std::vector<Finding> findings_of(const Survey& survey, std::span<const Link> links) {
  return Diagnosis(survey, links).findings();
}

}  // namespace sluice
