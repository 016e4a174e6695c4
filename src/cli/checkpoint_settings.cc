#include "cli/checkpoint_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/restarts.h"
#include "cli/specs.h"

namespace sluice::cli {
namespace {

// All settings but those that say where, how fast, how long or with what output a run computes what
// it computes. With most schedules the length changes the learning rate.
Agreement mathematics_of(const Settings& settings) {
  Agreement agreement = agreement_of(settings);
  for (const char* key : {"run",
                          "trace",
                          "json",
                          "log-level",
                          "save",
                          "checkpoint",
                          "checkpoint-every",
                          "keep",
                          "resume",
                          "transport",
                          "transport-threads",
                          "loaders",
                          "evaluate-every",
                          "on-nonfinite",
                          "data-dir",
                          "device",
                          "kernels",
                          "time-scale",
                          "cluster",
                          "credit",
                          "peer-credit"}) {
    agreement.erase(key);
  }
  if (settings.text("lr-schedule") == "step") {
    agreement.erase("epochs");
    agreement.erase("iterations");
  }
  return agreement;
}

// "500it" or "10min".
Result<void> read_interval(const std::string& text, CheckpointSpec& spec) {
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(unit_at);
  std::int64_t count = 0;
  const auto fault = std::from_chars(text.data(), text.data() + unit_at, count).ec;
  const std::map<std::string, double> seconds{{"s", 1}, {"min", 60}, {"h", 3600}};
  const auto scale = seconds.find(unit);
  if (fault != std::errc() || count < 1 || (unit != "it" && scale == seconds.end())) {
    return Error(fmt::format(
        "--checkpoint-every: is \"{}\", expected a number of iterations such as 500it, or a time "
        "such as 90s, 10min or 2h",
        text));
  }
  if (unit == "it") {
    spec.every = count;
  } else {
    spec.interval = from_us(static_cast<double>(count) * scale->second * 1e6);
  }
  return {};
}

// By `launch --max-restarts`.
bool was_restarted() {
  const char* restart = std::getenv(kRestartVariable);
  return restart != nullptr && std::string_view(restart) != "0";
}

// As run_with_restarts() tells them; none if somebody else has set the variable.
std::vector<EarlierStart> earlier_starts() {
  std::vector<EarlierStart> all;
  const char* const text = std::getenv(kEarlierStartsVariable);
  const auto json = nlohmann::json::parse(text != nullptr ? text : "[]", nullptr, false);
  for (const auto& start : json.is_array() ? json : nlohmann::json::array()) {
    if (!start.is_object() || !start.contains("why") || !start["why"].is_string()) {
      return {};
    }
    EarlierStart& one = all.emplace_back(start["why"].get<std::string>());
    if (const auto after = start.find("after_s"); after != start.end() && after->is_number()) {
      one.after_s = after->get<double>();
    }
    if (const auto at = start.find("checkpoint"); at != start.end() && at->is_number_integer()) {
      one.checkpoint = at->get<Iteration>();
    }
  }
  return all;
}

}  // namespace

Result<CheckpointSpec> checkpoint_spec(const Settings& settings) {
  CheckpointSpec spec;
  spec.folder = settings.text("checkpoint");
  spec.resume = settings.text("resume");
  spec.earlier_starts = earlier_starts();
  if (spec.resume.empty() && !spec.folder.empty() && was_restarted()) {
    spec.resume = "auto";
  }
  spec.keep = static_cast<std::size_t>(settings.integer("keep"));
  if (spec.folder.empty()) {
    if (const auto plain =
            settings.refuse({"checkpoint-every", "keep"}, "is for --checkpoint, which is missing");
        !plain) {
      return plain.error();
    }
  }
  if (const auto read = read_interval(settings.text("checkpoint-every"), spec); !read) {
    return read.error();
  }
  spec.settings = mathematics_of(settings);
  spec.about_hosts = {"workers", "workers-per-host", "servers", "servers-per-host"};
  spec.about_batches = {"batch", "accumulate", "batch-shares"};
  return spec;
}

}  // namespace sluice::cli
