#include "session/merging.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "report/names.h"

namespace sluice {

std::vector<std::string> groups_of(const Assembly& assembly) {
  const ChunkNames name = chunk_names(assembly.job.layers, *assembly.chunks);
  std::vector<std::string> groups;
  for (std::size_t c = assembly.chunks->size(); c-- > 0;) {
    groups.push_back(name(ChunkId(c)));
  }
  return groups;
}

nlohmann::ordered_json to_json(const Merging& merging) {
  const auto& [alone, busy] = merging.cost;
  return {{"groups", merging.groups},
          {"as", name_of(kMergedAsNames, merging.as)},
          {"startup_us", to_us(alone.startup)},
          {"ns_per_byte", alone.ns_per_byte},
          {"busy_startup_us", to_us(busy.startup)},
          {"busy_ns_per_byte", busy.ns_per_byte},
          {"predicted_us", to_us(merging.predicted)},
          {"iteration_us", to_us(merging.iteration)},
          {"replans", merging.replans}};
}

void add_rows(const nlohmann::ordered_json& merging, Table& table) {
  const auto number = [&](const char* key) { return merging[key].get<double>(); };
  const auto groups = merging["groups"].get<std::vector<std::string>>();
  table.add_row(
      {"messages, merged", fmt::format("{}: {}", groups.size(), fmt::join(groups, ", "))});
  if (const auto as = merging["as"].get<std::string>(); as != "merged") {
    table.add_row({"merging", fmt::format("no gain predicted: as {}", as)});
  }
  const auto line = [&](const char* startup, const char* slope) {
    return fmt::format("{:.1f} us + {:.4f} ns per byte", number(startup), number(slope));
  };
  table.add_row({"time of an all-reduce", line("startup_us", "ns_per_byte")});
  table.add_row({"  among others", line("busy_startup_us", "busy_ns_per_byte")});
  table.add_row({"iteration, planned / measured",
                 fmt::format("{:.3f} / {:.3f} ms", number("predicted_us") / 1000,
                             number("iteration_us") / 1000)});
  table.add_row({"plans changed", fmt::format("{}", merging["replans"].get<int>())});
}

Merging merging_of(const MergeOutcome& outcome, const Assembly& assembly) {
  return {.groups = groups_of(assembly),
          .cost = outcome.policy.cost(),
          .as = outcome.policy.plan().as,
          .predicted = outcome.policy.plan().iteration,
          .iteration = outcome.measured,
          .replans = outcome.policy.replans()};
}

std::string text_of(const MergePolicy::Decision& decision) {
  nlohmann::json groups = nlohmann::json::array();
  for (const LayerGroup& group : decision.groups) {
    groups.push_back({group.begin, group.end});
  }
  return nlohmann::json{{"groups", groups}, {"interval", decision.interval}}.dump();
}

MergePolicy::Decision decision_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  MergePolicy::Decision decision{.groups = {}, .interval = json.at("interval")};
  for (const auto& group : json.at("groups")) {
    decision.groups.push_back({group.at(0), group.at(1)});
  }
  return decision;
}

}  // namespace sluice
