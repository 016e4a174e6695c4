#include "report/page/run_data.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "formats/document.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// As json_number() writes numbers.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  if (value == "NaN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (value == "Infinity" || value == "-Infinity") {
    const double infinity = std::numeric_limits<double>::infinity();
    return value == "Infinity" ? infinity : -infinity;
  }
  return std::nullopt;
}

std::optional<double> number_at(const Json& table, const char* key) {
  const auto found = table.find(key);
  return found == table.end() ? std::nullopt : number_of(*found);
}

// Null if there is none.
const Json* value_at(const Json& table, std::initializer_list<const char*> keys) {
  const Json* at = &table;
  for (const char* key : keys) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || found == at->end()) {
      return nullptr;
    }
    at = &*found;
  }
  return at;
}

// A row of a step or of an evaluation; others, such as those of a simulation, say nothing new.
void read_row(const Json& row, RunData& run) {
  const auto at = [&](const char* key) { return number_at(row, key); };
  if (const auto accuracy = at("test_accuracy")) {
    run.evaluations.push_back({.step = at("step").value_or(0),
                               .epoch = at("epoch").value_or(0),
                               .seconds = at("time_s").value_or(0),
                               .loss = at("test_loss").value_or(0),
                               .accuracy = *accuracy});
  } else if (const auto step = at("step")) {
    run.steps.push_back({.step = *step,
                         .samples = at("samples").value_or(0),
                         .seconds = at("time_s").value_or(0),
                         .loss = at("loss")});
  }
}

// The text of a file that a run may lack.
Result<std::string> read_if_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? read_file(path) : Result<std::string>(std::string());
}

Result<Json> read_summary(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error(folder.string() + ": is not a folder; name the folder of a run");
  }
  const fs::path path = folder / "summary.json";
  if (!fs::exists(path, ignored)) {
    return Error(folder.string() +
                 ": has no summary.json; either it is not the folder of a run, or the run has not "
                 "ended");
  }
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  auto summary = parse_json(*text, path.string());
  if (summary && !summary->is_object()) {
    return Error(path.string() + ": is not the summary of a run");
  }
  return summary;
}

Result<void> read_time_line(const fs::path& path, RunData& run) {
  const auto text = read_if_there(path);
  if (!text || text->empty()) {
    return text ? Result<void>() : text.error();
  }
  const auto json = parse_json(*text, path.string());
  if (!json) {
    return json.error();
  }
  auto read = time_line_from(*json);
  if (!read) {
    return read.error().within(path.string());
  }
  run.time_line = *std::move(read);
  return {};
}

}  // namespace

std::optional<double> RunData::number(std::initializer_list<const char*> keys) const {
  const Json* value = value_at(summary, keys);
  return value == nullptr ? std::nullopt : number_of(*value);
}

std::string RunData::text(std::initializer_list<const char*> keys) const {
  const Json* value = value_at(summary, keys);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::vector<RunSetting> settings_from(const std::string& toml) {
  std::vector<RunSetting> settings;
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) {
      line.erase(0, 2);  // the place of the record
    }
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) {
      continue;
    }
    const std::size_t comment = line.rfind("  # ");
    const bool has_origin = comment != std::string::npos && comment > equals;
    settings.push_back(
        {.key = line.substr(0, equals),
         .value = line.substr(equals + 3, has_origin ? comment - equals - 3 : std::string::npos),
         .origin = has_origin ? line.substr(comment + 4) : ""});
  }
  return settings;
}

Result<void> read_metrics(const std::string& text, RunData& run) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = parse_json(line, fmt::format("line {}", ++number));
    if (!row) {
      return row.error();
    }
    if (!row->is_object()) {
      return Error(fmt::format("line {}: is not an object", number));
    }
    read_row(*row, run);
  }
  return {};
}

Result<std::vector<LinkSample>> links_from(const std::string& csv) {
  std::vector<LinkSample> samples;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);  // the titles
  for (int number = 2; std::getline(lines, line); ++number) {
    std::istringstream cells(line);
    LinkSample sample;
    char comma = 0;
    cells >> sample.seconds >> comma >> sample.host >> comma >> sample.received >> comma >>
        sample.sent;
    if (!cells) {
      return Error(
          fmt::format("line {}: expected a time, a host and two numbers of bytes", number));
    }
    samples.push_back(sample);
  }
  return samples;
}

Result<RunData> read_run(const fs::path& folder) {
  auto summary = read_summary(folder);
  if (!summary) {
    return summary.error();
  }
  RunData run;
  std::error_code ignored;
  run.name = fs::weakly_canonical(folder, ignored).filename().string();
  run.summary = *std::move(summary);
  const auto config = read_if_there(folder / "config.toml");
  const auto metrics = read_if_there(folder / "metrics.jsonl");
  const auto traffic = read_if_there(folder / "utilisation.csv");
  for (const auto* text : {&config, &metrics, &traffic}) {
    if (!*text) {
      return text->error();
    }
  }
  run.settings = settings_from(*config);
  if (const auto read = read_metrics(*metrics, run); !read) {
    return read.error().within((folder / "metrics.jsonl").string());
  }
  auto links = links_from(*traffic);
  if (!links) {
    return links.error().within((folder / "utilisation.csv").string());
  }
  run.links = *std::move(links);
  if (const auto read = read_time_line(folder / "timeline.json", run); !read) {
    return read.error();
  }
  return run;
}

}  // namespace sluice
