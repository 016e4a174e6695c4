#include "session/collection.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace sluice {

std::string seen_by(const ProcessGroup& group, const Record& record, const Counters& own) {
  auto counters = nlohmann::ordered_json::array();
  for (const auto counter : kCounters) {
    counters.push_back(own.*counter);
  }
  const std::string seen = record.report(HostId(group.rank()));
  return nlohmann::ordered_json{{"counters", counters}, {"seen", seen}}.dump();
}

Counters adopt(std::span<const std::string> seen, const ProcessGroup& group, Record& record) {
  Counters sum;
  for (std::size_t r = 0; r < seen.size(); ++r) {
    if (seen[r].empty()) {
      continue;
    }
    const auto report = nlohmann::ordered_json::parse(seen[r]);
    for (std::size_t c = 0; c < kCounters.size(); ++c) {
      sum.*kCounters[c] += report.at("counters").at(c).get<std::int64_t>();
    }
    if (r != group.rank()) {
      record.adopt(HostId(r), report.at("seen"));
    }
  }
  return sum;
}

Counters collect(ProcessGroup& group, Record& record, const Counters& own) {
  std::string self;
  group.attend([&] { self = seen_by(group, record, own); });
  const std::vector<std::string> seen = group.to_leader(self, "the record");
  Counters sum;
  group.attend([&] { sum = adopt(seen, group, record); });
  return sum;
}

}  // namespace sluice
