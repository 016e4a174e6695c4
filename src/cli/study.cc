// sluice study: runs a study of a paper, and shows its figures beside those of the paper.

#include "formats/study.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/profile_search.h"
#include "cli/simulate_sweep.h"
#include "report/board.h"
#include "report/line_chart.h"
#include "report/table.h"
#include "session/contest.h"
#include "session/study_data.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWidth = 100;

// The text in lines of at most this width, all but the first indented.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string result;
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      result += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return result + line + "\n";
}

int list_studies(bool as_json) {
  OrderedJson all = OrderedJson::array();
  Table table({{"study"}, {"what it shows"}});
  for (const auto& [name, path] : known_studies()) {
    const auto study = read_study(path);
    if (!study) {
      return bad_input(study.error());
    }
    all.push_back({{"name", name}, {"title", study->title}, {"paper", study->paper}});
    table.add_row({name, study->title});
  }
  as_json ? print(all) : print(table.render());
  return kOk;
}

// A figure of the study, or what is missing for it.
struct Found {
  const StudyFigure& figure;
  Result<Spread> here;

  std::string text() const {
    if (!here) {
      return "-";
    }
    return std::isnan(here->mean)
               ? "diverged"
               : here->text(figure.decimals) + (figure.unit.empty() ? "" : " " + figure.unit);
  }
};

std::vector<Found> find_figures(const Study& study, const StudyData& data) {
  std::vector<Found> all;
  for (const StudyFigure& figure : study.figures) {
    all.push_back({figure, data.figure(figure)});
  }
  return all;
}

OrderedJson contest_json(const StudyContest& contest, const Board& board) {
  OrderedJson rows = OrderedJson::array();
  for (const Board::Row& row : board.rows) {
    OrderedJson cells = OrderedJson::array();
    for (const Board::Cell& cell : row.cells) {
      cells.push_back({{"winner", cell.name}, {"figure", cell.figure}, {"all", cell.all}});
    }
    rows.push_back({{"name", row.name}, {"cells", cells}});
  }
  return {{"name", contest.name}, {"columns", board.columns}, {"rows", rows}};
}

OrderedJson figures_json(const Study& study, const std::vector<Found>& all, const StudyData& data) {
  OrderedJson figures = OrderedJson::array();
  for (const auto& [figure, here] : all) {
    OrderedJson one{{"what", figure.what}, {"paper", figure.paper}};
    if (here) {
      one["here"] = here->mean;
      one["deviation"] = here->deviation;
    } else {
      one["missing"] = here.error().message();
    }
    one["why"] = figure.why;
    figures.push_back(std::move(one));
  }
  OrderedJson contests = OrderedJson::array();
  for (const StudyContest& contest : study.contests) {
    if (const auto board = decide(contest, data)) {
      contests.push_back(contest_json(contest, *board));
    }
  }
  return {
      {"title", study.title}, {"paper", study.paper}, {"figures", figures}, {"contests", contests}};
}

void print_figures(const Study& study, const std::vector<Found>& all) {
  print(wrapped(study.title + ": " + study.paper, ""));
  if (all.empty()) {
    return;
  }
  Table table({{"figure"}, {"paper", Table::Align::kRight}, {"here", Table::Align::kRight}});
  for (const Found& found : all) {
    table.add_row({found.figure.what, found.figure.paper, found.text()});
  }
  print(table.render());
  std::string last;
  for (const auto& [figure, here] : all) {
    if (!figure.why.empty() && figure.why != last) {
      print(wrapped("- " + figure.what + ": " + figure.why, "  "));
    }
    last = figure.why;
  }
}

// The short form may lack some of their cells.
void print_contests(const Study& study, const StudyData& data) {
  for (const StudyContest& contest : study.contests) {
    if (const auto board = decide(contest, data)) {
      print(wrapped(contest.title, "") + to_text(*board));
    }
  }
}

Result<void> draw_pictures(const Study& study, const StudyData& data, const fs::path& folder) {
  std::error_code failed_to_create;
  fs::create_directories(folder, failed_to_create);  // writing to it reports a failure
  for (const StudyPicture& picture : study.pictures) {
    const auto chart = data.picture(picture);
    if (!chart) {
      continue;  // the short form may lack its cells
    }
    if (auto written = write_file(folder / (picture.name + ".svg"), to_svg(*chart)); !written) {
      return written;
    }
  }
  for (const StudyContest& contest : study.contests) {
    const auto board = decide(contest, data);
    if (!board) {
      continue;
    }
    if (auto written = write_file(folder / (contest.name + ".svg"), to_svg(*board)); !written) {
      return written;
    }
  }
  return {};
}

// What a CSV file says.
int report_data(const Study& study, const fs::path& csv, const std::string& folder, bool as_json) {
  const auto text = read_file(csv);
  if (!text) {
    return bad_input(text.error());
  }
  const auto data = StudyData::parse(*text, csv.string());
  if (!data) {
    return bad_input(data.error());
  }
  if (!folder.empty()) {
    if (const auto drawn = draw_pictures(study, *data, folder); !drawn) {
      return failed(drawn.error());
    }
  }
  const std::vector<Found> all = find_figures(study, *data);
  if (as_json) {
    print(figures_json(study, all, *data));
    return kOk;
  }
  print_figures(study, all);
  print_contests(study, *data);
  return kOk;
}

// The settings of the sweep: those of the file, of its short form, and of the command line.
Result<Settings> sweep_settings(const Study& study, const std::string& path,
                                const Settings& settings) {
  Settings::Flags flags;
  if (settings.on("quick")) {
    for (const auto& [key, value] : study.quick) {
      flags[spelled(key)] = value;
    }
  }
  for (const char* key : {"run", "threads", "log-level"}) {
    if (settings.is_chosen(key)) {
      flags[key] = settings.values().at(key).is_string() ? settings.text(key)
                                                         : settings.values().at(key).dump();
    }
  }
  auto resolved = Settings::resolve(Command::kSimulate, flags, path);
  if (!resolved) {
    return resolved;
  }
  Settings sweep = *std::move(resolved);
  sweep.set_command_line(settings.command_line());
  if (const auto located = locate_files(sweep); !located) {
    return located.error();
  }
  return sweep;
}

}  // namespace

int study(const Settings& settings, const Words& names) {
  if (settings.on("list")) {
    return names.empty() ? list_studies(settings.on("json"))
                         : bad_input(Error(names.front() + ": --list takes no name"));
  }
  if (names.size() != 1) {
    return bad_input(Error("study: expected the name of one study; --list shows them"));
  }
  const auto path = find_study(names.front());
  if (!path) {
    return bad_input(path.error());
  }
  const auto study = read_study(*path);
  if (!study) {
    return bad_input(study.error());
  }
  if (settings.on("recorded")) {
    const fs::path file(*path);
    const fs::path csv = file.parent_path() / "data" / (file.stem().string() + ".csv");
    return report_data(*study, csv, settings.text("run"), settings.on("json"));
  }
  const auto sweep = sweep_settings(*study, *path, settings);
  if (!sweep) {
    return bad_input(sweep.error());
  }
  return run_sweep(*sweep, "study-" + fs::path(*path).stem().string(), [&](const Swept& swept) {
    const fs::path folder = swept.folder.path();
    const int code =
        report_data(*study, folder / "sweep.csv", folder.string(), settings.on("json"));
    if (code == kOk && !settings.on("json")) {
      print(fmt::format("data and pictures in {}\n", folder.string()));
    }
    return code;
  });
}

}  // namespace sluice::cli
