#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "drivers/hub/hub_world.h"

namespace sluice {

std::optional<HubJob> find_hub_job(const Environment& environment) {
  const auto launch = find_launch(environment);
  const char* const token = environment(kHubTokenVariable);
  if (!launch || launch->pmi != Pmi::kHub || token == nullptr || launch->rank >= launch->size) {
    return std::nullopt;
  }
  const std::string where = environment(kHubVariable);
  const std::size_t colon = std::min(where.find(':'), where.size());
  Endpoint endpoint{where.substr(0, colon), 0};
  std::from_chars(where.data() + std::min(colon + 1, where.size()), where.data() + where.size(),
                  endpoint.port);
  const bool joins = environment(kHubJoinVariable) != nullptr;
  return HubJob{{endpoint, token}, launch->rank, *launch->size, joins};
}

std::optional<HubJob> find_hub_job() {
  return find_hub_job([](const char* name) { return std::getenv(name); });
}

}  // namespace sluice
