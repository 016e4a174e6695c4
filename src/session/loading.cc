#include "session/loading.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace sluice {

std::string text_of(const LoadingTally& own) {
  return nlohmann::json{own.batches, own.ahead, own.loading.count(), own.waited.count()}.dump();
}

nlohmann::ordered_json loading_of(std::span<const std::string> texts) {
  LoadingTally sum;
  for (const std::string& report : texts) {
    if (report.empty()) {
      continue;
    }
    const auto other = nlohmann::json::parse(report);
    sum += {.batches = other.at(0),
            .ahead = other.at(1),
            .loading = Duration(other.at(2).get<std::int64_t>()),
            .waited = Duration(other.at(3).get<std::int64_t>())};
  }
  return {{"batches", sum.batches},
          {"batches_ahead", sum.ahead},
          {"loading_s", to_seconds(sum.loading)},
          {"waited_s", to_seconds(sum.waited)}};
}

void add_loading_rows(const nlohmann::ordered_json& loading, Table& table) {
  table.add_row(
      {"batches loaded ahead", fmt::format("{} of {}", loading["batches_ahead"].get<std::int64_t>(),
                                           loading["batches"].get<std::int64_t>())});
  table.add_row({"loading / waiting for it, all workers",
                 fmt::format("{:.2f} / {:.2f} s", loading["loading_s"].get<double>(),
                             loading["waited_s"].get<double>())});
}

}  // namespace sluice
