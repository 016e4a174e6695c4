#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "report/table.h"
#include "session/evaluation.h"

namespace sluice::cli {

int evaluate(const Settings& settings) {
  if (settings.text("model").starts_with(kReplay)) {
    return bad_input(Error("--model: a replay learns nothing; there is nothing to evaluate"));
  }
  const auto spec = model_spec(settings, static_cast<std::size_t>(settings.integer("loaders")));
  if (!spec) {
    return bad_input(spec.error());
  }
  const auto result = evaluate_model(*spec, session_log());
  if (!result) {
    return bad_input(result.error());
  }
  if (settings.on("json")) {
    print(*result);
    return kOk;
  }
  const OrderedJson& summary = *result;
  Table table({{""}, {"", Table::Align::kRight}});
  if (summary.contains("test_accuracy")) {
    table.add_row(
        {"test accuracy", fmt::format("{:.2f} %", summary["test_accuracy"].get<double>() * 100)});
  }
  table.add_row({"test loss", summary["test_loss"].is_number()
                                  ? fmt::format("{:.6f}", summary["test_loss"].get<double>())
                                  : summary["test_loss"].dump()});
  table.add_row({"test samples", fmt::format("{}", summary["test_samples"].get<std::int64_t>())});
  table.add_row({"parameters", fmt::format("{}", summary["parameters"].get<std::int64_t>())});
  if (summary.contains("init")) {
    table.add_row({"read from", summary["init"].get<std::string>()});
  }
  print(table.render());
  return kOk;
}

}  // namespace sluice::cli
