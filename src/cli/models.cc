#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "report/table.h"
#include "torch/torch_learner.h"

namespace sluice::cli {

int models(const Settings& settings) {
  using enum Table::Align;
  auto list = nlohmann::ordered_json::array();
  Table table({{"model"},
               {"parameters", kRight},
               {"layers", kRight},
               {"forward GFLOP", kRight},
               {"input"},
               {"what it is"}});
  for (const ModelInfo& model : torch_models()) {
    table.add_row({model.name, fmt::format("{}", model.parameters), fmt::format("{}", model.layers),
                   fmt::format("{:.3f}", static_cast<double>(model.forward_flops) / 1e9),
                   fmt::format("{}", fmt::join(model.form.shape, " x ")), model.description});
    list.push_back({{"name", model.name},
                    {"parameters", model.parameters},
                    {"layers", model.layers},
                    {"forward_flops", model.forward_flops},
                    {"input_shape", model.form.shape},
                    {"classes", model.form.classes},
                    {"description", model.description}});
  }
  if (settings.on("json")) {
    print(list);
  } else if (list.empty()) {
    return failed(Error("no models are available: " + torch_engine().advice));
  } else {
    print(table.render());
  }
  return kOk;
}

}  // namespace sluice::cli
