#include "session/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "drivers/realtime/clock.h"

namespace sluice {

Kernels choose_kernels(std::optional<Kernels> asked, const TorchTask& task) {
  const Clock clock;
  if (task.device == "cpu" && !asked) {
    spdlog::info("measuring which kernels are fastest; --kernels NAME skips this");
  }
  const auto choice = configure_engine(
      task, [&] { return to_seconds(clock.now()); }, asked);
  if (!choice) {
    spdlog::warn("{}", choice.error().message());
    return {};
  }
  if (task.device != "cpu") {
    spdlog::info("computes on {} with TF32", task.device);
  }
  std::vector<std::string> trials;
  for (const auto& [kernels, seconds] : choice->trials) {
    trials.push_back(
        fmt::format("{:.1f} ms with {}", seconds * 1e3, name_of(kKernelsNames, kernels)));
  }
  if (!trials.empty()) {
    spdlog::info("kernels {}: a step takes {}", name_of(kKernelsNames, choice->kernels),
                 fmt::join(trials, ", "));
  }
  return choice->kernels;
}

}  // namespace sluice
