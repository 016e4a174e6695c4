#include "formats/profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/specs.h"
#include "drivers/realtime/clock.h"
#include "report/table.h"
#include "session/engine.h"
#include "session/task.h"
#include "torch/profiling/torch_profile.h"

namespace sluice::cli {
namespace {

double samples_per_s(const Profile& profile) {
  return static_cast<double>(profile.batch) / to_seconds(profile.compute());
}

Result<Profile> measure(const Settings& settings, const TaskSpec& spec, const TorchTask& task) {
  if (const auto plain = settings.refuse({"device-bandwidth", "samples-per-s"},
                                         "is for an estimate; give --device-flops too");
      !plain) {
    return plain.error();
  }
  const std::string name = settings.text("device-name");
  const Kernels kernels = choose_kernels(spec.kernels, task, session_log());
  const Clock clock;
  auto profile =
      measure_profile(with_kernels(task, kernels), [&] { return to_seconds(clock.now()); });
  if (!profile) {
    return profile;
  }
  Profile measured = *std::move(profile);
  measured.device = name.empty() ? task.device : name;
  measured.source = settings.text("source");
  if (measured.source.empty()) {
    measured.source =
        fmt::format("sluice profile with LibTorch {}{}", torch_engine().version,
                    task.device == "cpu"
                        ? fmt::format(", one thread, kernels {}", name_of(kKernelsNames, kernels))
                        : "");
  }
  return measured;
}

Result<Profile> estimate(const Settings& settings, const TorchTask& task) {
  if (const auto plain = settings.refuse({"device", "kernels", "precision"},
                                         "an estimate measures nothing; leave it out, or "
                                         "leave out --device-flops");
      !plain) {
    return plain.error();
  }
  constexpr double kFlopsAByte = 20;
  DeviceSpeed speed{settings.number("device-flops"), settings.number("device-bandwidth")};
  if (speed.bytes == 0) {
    speed.bytes = speed.flops / kFlopsAByte;
  }
  auto profile = estimate_profile(task, speed);
  if (!profile) {
    return profile;
  }
  const double wanted = settings.number("samples-per-s");
  Profile estimated = wanted > 0 ? scaled(*profile, samples_per_s(*profile) / wanted, 1) : *profile;
  const std::string limits = fmt::format("{:g} FLOP/s and {:g} B/s", speed.flops, speed.bytes);
  const std::string name = settings.text("device-name");
  const std::string source = settings.text("source");
  estimated.device = name.empty() ? limits : name;
  estimated.source =
      fmt::format("estimated from {}{}{}", limits,
                  wanted > 0 ? fmt::format(", scaled to {:g} samples/s", wanted) : "",
                  source.empty() ? "" : ": " + source);
  return estimated;
}

Result<Profile> make_profile(const Settings& settings) {
  auto spec = task_spec(settings);
  if (!spec) {
    return spec.error();
  }
  TaskSpec asked = *std::move(spec);
  asked.data.samples = asked.batch;
  const auto task = make_task(asked, 1, session_log());
  if (!task) {
    return task.error();
  }
  auto profile = settings.number("device-flops") > 0 ? estimate(settings, *task)
                                                     : measure(settings, asked, *task);
  if (!profile) {
    return profile;
  }
  Profile named = *std::move(profile);
  named.name = std::filesystem::path(named.name).stem().string();
  return named;
}

Duration interquartile_range(const Profile& profile) {
  Duration sum{0};
  for (const LayerProfile& layer : profile.layers) {
    sum += layer.forward_iqr + layer.backward_iqr;
  }
  return sum;
}

void show(const Profile& profile, const std::string& path, bool as_json) {
  const auto ms = [](Duration time) { return to_us(time) / 1e3; };
  if (as_json) {
    print(nlohmann::ordered_json{{"name", profile.name},
                                 {"batch", profile.batch},
                                 {"device", profile.device},
                                 {"estimated", profile.estimated},
                                 {"layers", profile.layers.size()},
                                 {"parameters", total_params(profile.layout())},
                                 {"forward_us", to_us(profile.forward())},
                                 {"backward_us", to_us(profile.backward())},
                                 {"interquartile_range_us", to_us(interquartile_range(profile))},
                                 {"samples_per_s", samples_per_s(profile)},
                                 {"file", path}});
    return;
  }
  Table table({{""}, {"", Table::Align::kRight}});
  table.add_row({"model", profile.name});
  table.add_row({"device", profile.device + (profile.estimated ? " (estimated)" : "")});
  table.add_row({"layers", fmt::format("{}", profile.layers.size())});
  table.add_row({"parameters", fmt::format("{}", total_params(profile.layout()))});
  table.add_row({"forward", fmt::format("{:.3f} ms", ms(profile.forward()))});
  table.add_row({"backward", fmt::format("{:.3f} ms", ms(profile.backward()))});
  if (!profile.estimated) {
    table.add_row(
        {"interquartile range", fmt::format("{:.3f} ms", ms(interquartile_range(profile)))});
  }
  table.add_row({"samples/s", fmt::format("{:.1f}", samples_per_s(profile))});
  print(table.render());
  print(fmt::format("profile in {}\n", path));
}

}  // namespace

int profile(const Settings& settings) {
  const std::string path = settings.text("out");
  if (const auto writable = check_writable(path); !writable) {
    return bad_input(writable.error());
  }
  const auto made = make_profile(settings);
  if (!made) {
    return bad_input(made.error());
  }
  if (const auto written = write_profile(path, *made); !written) {
    return failed(written.error());
  }
  show(*made, path, settings.on("json"));
  return kOk;
}

}  // namespace sluice::cli
