#include "cli/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "formats/survey.h"
#include "report/table.h"

namespace sluice::cli {
namespace {

constexpr SurveySpec kQuickLook{.enough = std::chrono::milliseconds(20), .repetitions = 3};

std::string interfaces_of(const RankInfo& info) {
  std::vector<std::string> texts;
  for (const Interface& interface : info.interfaces) {
    texts.push_back(
        fmt::format("{} {}/{}{}", interface.name, interface.address, interface.prefix,
                    interface.gbps ? fmt::format(" ({:g} Gb/s)", *interface.gbps) : std::string()));
  }
  return texts.empty() ? "none but loopback" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string render_members(const Survey& survey) {
  Table table({{"rank", Table::Align::kRight}, {"host"}, {"interfaces"}});
  for (std::size_t r = 0; r < survey.ranks.size(); ++r) {
    const auto& info = survey.ranks[r];
    table.add_row({fmt::format("{}", r), info ? info->host : "?",
                   info ? interfaces_of(*info) : "does not hear rank 0, or is not heard"});
  }
  return table.render();
}

std::string render_pairs(const Survey& survey, const std::vector<Link>& links) {
  const auto find = [&](std::size_t from, std::size_t to) {
    return std::ranges::find_if(
        links, [&](const Link& link) { return link.from == from && link.to == to; });
  };
  Table table({{"pair"},
               {"latency", Table::Align::kRight},
               {"there", Table::Align::kRight},
               {"back", Table::Align::kRight},
               {"range", Table::Align::kRight}});
  for (std::size_t a = 0; a < survey.ranks.size(); ++a) {
    for (std::size_t b = a + 1; b < survey.ranks.size(); ++b) {
      const std::string pair = fmt::format("{} - {}", a, b);
      const auto there = find(a, b);
      const auto back = find(b, a);
      if (there != links.end() && back != links.end()) {
        table.add_row(
            {pair, fmt::format("{:.1f} us", to_us(there->latency)),
             fmt::format("{:.3g} Gb/s", there->gbps), fmt::format("{:.3g} Gb/s", back->gbps),
             fmt::format("{:.0f} %", 100 * std::max(there->relative_range, back->relative_range))});
      } else {
        const bool silent = std::ranges::count(survey.silent, RankPair(a, b)) > 0;
        table.add_row({pair, silent ? "no answer" : "not measured", "", "", ""});
      }
    }
  }
  return table.render();
}

OrderedJson summarise(const Survey& survey, const std::vector<Link>& links,
                      const std::vector<Finding>& findings) {
  OrderedJson ranks = OrderedJson::array();
  for (const auto& info : survey.ranks) {
    ranks.push_back(info ? OrderedJson(sluice::to_json(*info)) : OrderedJson());
  }
  OrderedJson measured = OrderedJson::array();
  std::ranges::transform(links, std::back_inserter(measured),
                         [](const Link& link) { return to_json(link); });
  OrderedJson found = OrderedJson::array();
  for (const Finding& finding : findings) {
    found.push_back({{"kind", name_of(kFindingNames, finding.kind)},
                     {"ranks", finding.ranks},
                     {"factor", finding.factor},
                     {"text", finding.text}});
  }
  return {{"ranks", ranks}, {"links", measured}, {"silent", survey.silent}, {"findings", found}};
}

void report(const Survey& survey, bool as_json) {
  const std::vector<Link> links = links_of(survey);
  const std::vector<Finding> findings = findings_of(survey, links);
  if (as_json) {
    print(summarise(survey, links, findings));
    return;
  }
  std::string text = render_members(survey) + "\n" + render_pairs(survey, links);
  text += findings.empty() ? "\nno problem was found with these links\n" : "\nfindings\n";
  for (const Finding& finding : findings) {
    text += finding.text + "\n";
  }
  print(text);
}

int check_network(ProcessGroup& group, const Settings& settings) {
  spdlog::info("measuring the links between {} processes", group.size());
  const auto survey = group.survey(kQuickLook);
  if (!survey) {
    return kOk;
  }
  report(*survey, settings.on("json"));
  if (!survey->silent.empty()) {
    give_up(group);
  }
  return kOk;
}

}  // namespace

TransportChoice transport_choice(const Settings& settings) {
  const nlohmann::json threads = settings.values().at("transport-threads");
  return {.kind = value_of(kTransportNames, settings.text("transport")),
          .threads = threads.is_number() ? std::optional(threads.get<int>()) : std::nullopt};
}

Result<std::unique_ptr<ProcessGroup>> join_network(const std::string& command) {
  auto group = join_processes(warn, fail);
  if (group && (*group)->size() < 2) {
    return Error(
        fmt::format("{}: measures the network between processes, and there is only one; start two "
                    "or more, such as: mpirun -np 4 --hostfile hosts sluice {}",
                    command, command));
  }
  return group;
}

void give_up(ProcessGroup& group) {
  std::fflush(stdout);
  group.abort(kFailed);
  std::abort();
}

OrderedJson to_json(const Link& link) {
  return {{"from", link.from},
          {"to", link.to},
          {"latency_us", to_us(link.latency)},
          {"min_latency_us", to_us(link.min)},
          {"gbps", link.gbps},
          {"relative_range", link.relative_range}};
}

int check_network(const Settings& settings) {
  const auto group = join_network("doctor --net");
  if (!group) {
    return bad_input(group.error());
  }
  return run_in(**group, [&] { return check_network(**group, settings); });
}

}  // namespace sluice::cli
