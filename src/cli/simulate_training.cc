#include "cli/simulate_training.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/console.h"
#include "cli/specs.h"
#include "cli/train_report.h"
#include "session/training_session.h"
#include "session/virtual_group.h"

namespace sluice::cli {

std::string note_on_batch(const Settings& settings, const Profile& profile) {
  const std::int64_t batch = settings.integer("batch");
  const std::int64_t profiled = profile.batch / settings.integer("accumulate");
  return batch == profiled
             ? ""
             : fmt::format(
                   "the times of profile {} are those of a batch of {}, and here a batch has {}; "
                   "--time-scale {:g} would make up for it",
                   profile.name, profiled, batch,
                   static_cast<double>(batch) / static_cast<double>(profiled));
}

int simulate_training(const Settings& settings, const SimulatedSetup& setup) {
  const Profile& profile = setup.profile;
  const Cluster& cluster = setup.cluster;
  auto asked = virtual_train_spec(settings, cluster);
  if (!asked) {
    return bad_input(asked.error());
  }
  TrainSpec spec = *std::move(asked);
  spec.strategy = settled(std::move(spec.strategy), setup.codec_choice);
  if (const std::string note = note_on_batch(settings, profile); !note.empty()) {
    spdlog::warn(note);
  }
  const auto group =
      make_virtual_group({.profile = profile,
                          .cluster = cluster,
                          .threads = static_cast<std::size_t>(settings.integer("threads")),
                          .slowdowns = setup.slowdowns});
  return run_in(*group, [&] { return train_and_report(*group, spec, settings); });
}

}  // namespace sluice::cli
