#include "session/collection.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice {

Counters collect(ProcessGroup& group, Record& record, const Counters& own) {
  auto counters = nlohmann::ordered_json::array();
  for (const auto counter : kCounters) {
    counters.push_back(own.*counter);
  }
  std::string self;
  group.attend([&] {
    const std::string seen = record.report(HostId(group.rank()));
    self = nlohmann::ordered_json{{"counters", counters}, {"seen", seen}}.dump();
  });
  const std::vector<std::string> reports = group.to_leader(self, "the record");
  Counters sum;
  const auto adopt_reports = [&] {
    for (std::size_t r = 0; r < reports.size(); ++r) {
      if (reports[r].empty()) {
        continue;
      }
      const auto report = nlohmann::ordered_json::parse(reports[r]);
      for (std::size_t c = 0; c < kCounters.size(); ++c) {
        sum.*kCounters[c] += report.at("counters").at(c).get<std::int64_t>();
      }
      if (r != group.rank()) {
        record.adopt(HostId(r), report.at("seen"));
      }
    }
  };
  group.attend(adopt_reports);
  return sum;
}

}  // namespace sluice
