#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "compute/torch/torch_learner.h"
#include "report/table.h"

namespace sluice::cli {

int models(const Settings& settings) {
  using enum Table::Align;
  auto list = nlohmann::ordered_json::array();
  Table table({{"model"}, {"parameters", kRight}, {"layers", kRight}, {"input"}, {"what it is"}});
  for (const ModelInfo& model : torch_models()) {
    table.add_row({model.name, fmt::format("{}", model.parameters), fmt::format("{}", model.layers),
                   fmt::format("{}", fmt::join(model.input_shape, " x ")), model.description});
    list.push_back({{"name", model.name},
                    {"parameters", model.parameters},
                    {"layers", model.layers},
                    {"input_shape", model.input_shape},
                    {"description", model.description}});
  }
  if (settings.on("json")) {
    print(list);
  } else if (list.empty()) {
    return failed(Error("there are no models: " + torch_engine().advice));
  } else {
    print(table.render());
  }
  return kOk;
}

}  // namespace sluice::cli
