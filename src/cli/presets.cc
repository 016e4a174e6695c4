#include "nodes/presets.h"

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "report/table.h"

namespace sluice::cli {

int presets(const Settings& settings) {
  auto list = nlohmann::ordered_json::array();
  Table table({{"preset"},
               {"algorithm"},
               {"exchange"},
               {"partition"},
               {"order"},
               {"codec"},
               {"paper"},
               {"what it is"}});
  for (const Preset& preset : sluice::presets()) {
    const Json values = to_values(preset.strategy);
    table.add_row({std::string(preset.name), values["algorithm"], values["exchange"],
                   values["partition"], values["order"], values["codec"], std::string(preset.paper),
                   std::string(preset.summary)});
    auto& entry = list.emplace_back(nlohmann::ordered_json{{"name", preset.name}});
    entry.update(values);
    entry["paper"] = preset.paper;
    entry["summary"] = preset.summary;
  }
  if (settings.on("json")) {
    print(list);
  } else {
    print(table.render());
  }
  return kOk;
}

}  // namespace sluice::cli
