#include "session/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "drivers/realtime/clock.h"

namespace sluice {

Kernels choose_kernels(std::optional<Kernels> asked, const TorchTask& task, const Log& log) {
  const Clock clock;
  if (task.device == "cpu" && !asked) {
    log.info("measuring which kernels are fastest; set kernels to skip this");
  }
  const auto choice = configure_engine(
      task, [&] { return to_seconds(clock.now()); }, asked);
  if (!choice && task.precision != Precision::kFp32) {
    throw std::runtime_error(choice.error().message());
  }
  if (!choice) {
    log.warn(choice.error().message());
    return {};
  }
  if (task.device != "cpu") {
    log.info(fmt::format("computes on {} with TF32", task.device));
  }
  std::vector<std::string> trials;
  for (const auto& [kernels, seconds] : choice->trials) {
    trials.push_back(
        fmt::format("{:.1f} ms with {}", seconds * 1e3, name_of(kKernelsNames, kernels)));
  }
  if (!trials.empty()) {
    log.info(fmt::format("kernels {}: a step takes {}", name_of(kKernelsNames, choice->kernels),
                         fmt::join(trials, ", ")));
  }
  return choice->kernels;
}

}  // namespace sluice
