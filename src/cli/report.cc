#include "cli/report.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "report/page/run_page.h"

namespace sluice::cli {
namespace {

std::string page_path(const Settings& settings, const Words& runs) {
  if (const std::string out = settings.text("out"); !out.empty()) {
    return out;
  }
  const std::filesystem::path folder(runs.front());
  return folder / (runs.size() == 1 ? "report.html" : "comparison.html");
}

}  // namespace

std::string report_of(const std::string& folder) {
  std::string fault;
  try {
    const auto written = write_report(folder);
    if (written) {
      return *written;
    }
    fault = written.error().message();
  } catch (const std::exception& e) {
    fault = e.what();
  }
  warn(fmt::format("the report of the run cannot be written: {}; \"sluice report {}\" tries again",
                   fault, folder));
  return folder;
}

int report(const Settings& settings, const Words& runs) {
  if (runs.empty()) {
    return bad_input(
        Error("report: expected the folder of a run, such as: sluice report runs/mlp"));
  }
  std::vector<RunData> all;
  for (const std::string& folder : runs) {
    auto run = read_run(folder);
    if (!run) {
      return bad_input(run.error().within("report"));
    }
    all.push_back(*std::move(run));
  }
  const std::string path = page_path(settings, runs);
  const Page page = all.size() == 1 ? run_page(all.front()) : comparison_page(all);
  if (const auto written = write_file(path, to_html(page)); !written) {
    return failed(written.error());
  }
  if (settings.on("json")) {
    print(OrderedJson{{"report", path}});
  } else {
    print(fmt::format("report in {}\n", path));
  }
  return kOk;
}

}  // namespace sluice::cli
