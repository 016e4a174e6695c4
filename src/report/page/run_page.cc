#include "report/page/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "report/page/limits.h"
#include "report/page/run_charts.h"

namespace sluice {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string whole(double value) { return fmt::format("{:.0f}", value); }

// 1234567 bytes as "1.23 MB".
std::string bytes_text(double bytes) {
  for (const auto& [unit, size] : {std::pair{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}) {
    if (bytes >= size) {
      return fmt::format("{:.3g} {}", bytes / size, unit);
    }
  }
  return fmt::format("{:.0f} bytes", bytes);
}

std::string milliseconds(double us) { return fmt::format("{:.4g} ms", us / 1000); }
std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

// What a run sends per iteration, in bytes.
std::optional<double> bytes_per_iteration(const RunData& run) {
  if (const auto simulated = run.number({"bytes_per_iteration"})) {
    return simulated;
  }
  const auto bytes = run.number({"mechanism", "bytes"});
  const double iterations = run.number({"iterations"}).value_or(0);
  return bytes && iterations > 0 ? std::optional(*bytes / iterations) : std::nullopt;
}

// The figures that one looks for first, as far as the run has them.
std::vector<std::pair<std::string, std::string>> main_figures(const RunData& run) {
  std::vector<std::pair<std::string, std::string>> figures;
  const auto add = [&](const char* name, std::optional<double> value, auto text) {
    if (value) {
      figures.emplace_back(name, text(*value));
    }
  };
  const auto seconds = [](double s) { return fmt::format("{:.4g} s", s); };
  add("test accuracy", run.number({"test_accuracy"}),
      [](double share) { return fmt::format("{:.2f} %", share * 100); });
  add("loss", run.number({"loss"}), [](double loss) { return fmt::format("{:.4f}", loss); });
  add("iteration", run.number({"iteration_us"}), milliseconds);
  add("lower bound", run.number({"bound_us"}), milliseconds);
  add("samples/s", run.number({"samples_per_s"}),
      [](double v) { return fmt::format("{:.4g}", v); });
  add(run.is_virtual() ? "virtual time" : "training time", run.number({"train_s"}), seconds);
  add("ran", run.number({"ran_s"}), seconds);
  add("sent per iteration", bytes_per_iteration(run), bytes_text);
  add("busiest link", link_use(run), percent_text);
  add("communication hidden", run.number({"mechanism", "hidden_share"}), percent_text);
  return figures;
}

std::string subtitle_of(const RunData& run) {
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) {
      text += (text.empty() ? "" : " · ") + part;
    }
  };
  add(run.text({"model"}));
  add(run.text({"profile"}));
  add(run.text({"preset"}));
  if (const auto workers = run.number({"workers"})) {
    add(whole(*workers) + (*workers == 1 ? " worker" : " workers"));
  }
  add(run.is_virtual() || run.number({"bound_us"}) ? "in virtual time" : "");
  add(run.text({"run", "started"}));
  return text;
}

Section learning_section(const RunData& run) {
  Section section{.title = "Learning", .blocks = {}};
  if (Charts charts = learning_charts({&run}); !charts.charts.empty()) {
    section.blocks.emplace_back(std::move(charts));
  }
  if (!run.evaluations.empty()) {
    PageTable table{.titles = {"epoch", "iteration", run.is_virtual() ? "virtual s" : "s",
                               "test loss", "test accuracy"},
                    .rows = {},
                    .folded = "All evaluations"};
    for (const RunEvaluation& row : run.evaluations) {
      table.rows.push_back({fmt::format("{:.2f}", row.epoch), whole(row.step),
                            fmt::format("{:.3f}", row.seconds), fmt::format("{:.4f}", row.loss),
                            fmt::format("{:.2f} %", row.accuracy * 100)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section limits_section(const RunData& run) {
  Section section{.title = "What limits the run", .blocks = {limits_of(run)}};
  if (StackedBars bars = breakdown_bars({&run}); !bars.bars.empty()) {
    section.blocks.emplace_back(std::move(bars));
  }
  return section;
}

PageTable links_table(const RunData& run) {
  PageTable table{.titles = {"host", "sent", "out busy", "in busy"}, .rows = {}};
  const double seconds = run.number({"train_s"}).value_or(0);
  const auto hosts = run.summary.find("by_host");
  if (hosts == run.summary.end() || !hosts->is_array() || seconds <= 0) {
    return table;
  }
  for (const auto& host : *hosts) {
    const auto at = [&](const char* key) {
      return host.is_object() && host.contains(key) && host[key].is_number()
                 ? host[key].get<double>()
                 : 0.0;
    };
    table.rows.push_back({whole(static_cast<double>(table.rows.size())),
                          bytes_text(at("sent_bytes")), percent_text(at("egress_busy_s") / seconds),
                          percent_text(at("ingress_busy_s") / seconds)});
  }
  if (table.rows.size() > 8) {
    table.folded = fmt::format("All {} hosts", table.rows.size());
  }
  return table;
}

Section links_section(const RunData& run) {
  Section section{.title = "Links", .blocks = {}};
  if (const auto out = run.number({"egress_utilisation"})) {
    section.blocks.emplace_back(Paragraph{fmt::format(
        "Links were busy for {} of the time on the way out and for {} on the way in (mean over the "
        "hosts).",
        percent_text(*out), percent_text(run.number({"ingress_utilisation"}).value_or(0)))});
  }
  if (Charts charts = utilisation_charts(run); !charts.charts.empty()) {
    section.blocks.emplace_back(std::move(charts));
  }
  if (PageTable table = links_table(run); !table.rows.empty()) {
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

// What the mechanism counted, in the words of the glossary.
Rows mechanism_rows(const RunData& run) {
  struct Row {
    const char* key;
    const char* name;
    std::string (*text)(double);
  };
  Rows rows;
  for (const auto& [key, name, text] :
       {Row{"messages", "messages sent", whole}, Row{"bytes", "payload sent", bytes_text},
        Row{"local_messages", "messages within a host", whole},
        Row{"chunks_per_model", "chunks per model", whole},
        Row{"chunks_sent", "chunks sent", whole},
        Row{"bytes_before_packing", "before a codec packed it", bytes_text},
        Row{"bytes_after_packing", "after", bytes_text},
        Row{"gradients_summed_locally", "gradients summed on their machine", whole},
        Row{"updates", "updates of parameters", whole},
        Row{"outer_steps", "outer steps of chunks", whole},
        Row{"overtakings_egress", "overtakings on the way out", whole},
        Row{"overtakings_inbox", "overtakings in a server", whole},
        Row{"hidden_share", "communication hidden behind compute", percent_text}}) {
    if (const auto value = run.number({"mechanism", key});
        value && (*value != 0 || key == std::string_view("hidden_share"))) {
      rows.push_back({name, text(*value)});
    }
  }
  return rows;
}

Section mechanism_section(const RunData& run) {
  Section section{.title = "What the mechanism did", .blocks = {}};
  if (Rows rows = mechanism_rows(run); !rows.empty()) {
    section.blocks.emplace_back(PageTable{.titles = {"", ""}, .rows = std::move(rows)});
  }
  const auto mechanism = run.summary.find("mechanism");
  if (mechanism != run.summary.end() && mechanism->is_object() &&
      mechanism->contains("sent_by_kind") && mechanism->at("sent_by_kind").is_object()) {
    PageTable kinds{.titles = {"kind of message", "messages", "payload"}, .rows = {}};
    for (const auto& [kind, traffic] : mechanism->at("sent_by_kind").items()) {
      kinds.rows.push_back(
          {kind,
           whole(run.number({"mechanism", "sent_by_kind", kind.c_str(), "messages"}).value_or(0)),
           bytes_text(
               run.number({"mechanism", "sent_by_kind", kind.c_str(), "bytes"}).value_or(0))});
    }
    if (!kinds.rows.empty()) {
      section.blocks.emplace_back(std::move(kinds));
    }
  }
  return section;
}

std::string unquoted(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Those that somebody chose first; the others are folded.
Section settings_section(const RunData& run) {
  PageTable chosen{.titles = {"setting", "value", "origin"}, .rows = {}};
  PageTable others = chosen;
  for (const RunSetting& setting : run.settings) {
    const bool by_default =
        setting.origin == "default" || setting.origin.starts_with("from preset");
    (by_default ? others : chosen)
        .rows.push_back({setting.key, unquoted(setting.value), setting.origin});
  }
  others.folded = fmt::format("{} more, by default or by preset", others.rows.size());
  Section section{.title = "Settings", .blocks = {}};
  for (PageTable& table : std::vector{std::move(chosen), std::move(others)}) {
    if (!table.rows.empty()) {
      section.blocks.emplace_back(std::move(table));
    }
  }
  return section;
}

Section machine_section(const RunData& run) {
  Rows rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      rows.push_back({name, value});
    }
  };
  add("command line", run.text({"run", "command_line"}));
  add("started", run.text({"run", "started"}));
  add("Sluice", run.text({"run", "version"}));
  std::string hosts;
  if (const auto of = run.summary.find("run"); of != run.summary.end() && of->is_object()) {
    for (const auto& host : of->value("hosts", nlohmann::json::array())) {
      hosts += (hosts.empty() ? "" : ", ") + (host.is_string() ? host.get<std::string>() : "");
    }
  }
  add("machines", hosts);
  add("system", run.text({"run", "system"}));
  add("LibTorch", run.text({"libtorch"}));
  add("device", run.text({"device"}));
  add("kernels", run.text({"kernels"}));
  if (const auto gbps = run.number({"network", "gbps"})) {
    add("links as measured", fmt::format("{:.3g} Gb/s, {:.0f} us", *gbps,
                                         run.number({"network", "startup_us"}).value_or(0)));
  }
  return {.title = "Machine and versions", .blocks = {PageTable{{"", ""}, std::move(rows)}}};
}

// Those with nothing in them are left out.
void add_section(Section section, Page& page) {
  if (!section.blocks.empty()) {
    page.sections.push_back(std::move(section));
  }
}

Section comparison_section(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  std::vector<std::vector<std::pair<std::string, std::string>>> figures;
  for (const RunData& run : runs) {
    figures.push_back(main_figures(run));
    for (const auto& [name, value] : figures.back()) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  PageTable table{.titles = {""}, .rows = {}};
  for (const RunData& run : runs) {
    table.titles.push_back(run.name);
  }
  for (const std::string& name : names) {
    std::vector<std::string> row{name};
    for (const auto& of_run : figures) {
      const auto found = std::ranges::find(of_run, name, [](const auto& f) { return f.first; });
      row.push_back(found == of_run.end() ? "" : found->second);
    }
    table.rows.push_back(std::move(row));
  }
  return {.title = "Figures", .blocks = {std::move(table)}};
}

}  // namespace

Page run_page(const RunData& run) {
  Page page{.title = run.name, .subtitle = subtitle_of(run), .sections = {}};
  if (auto figures = main_figures(run); !figures.empty()) {
    add_section({.title = "", .blocks = {Highlights{std::move(figures)}}}, page);
  }
  const bool is_run = run.number({"iteration_us"}).has_value();
  if (is_run) {
    add_section(limits_section(run), page);
  }
  add_section(learning_section(run), page);
  if (run.time_line && run.time_line->length > 0) {
    add_section({.title = "Time line", .blocks = {*run.time_line}}, page);
  }
  add_section(links_section(run), page);
  add_section(mechanism_section(run), page);
  add_section(settings_section(run), page);
  add_section(machine_section(run), page);
  return page;
}

Page comparison_page(const std::vector<RunData>& runs) {
  std::vector<const RunData*> all;
  std::string names;
  for (const RunData& run : runs) {
    all.push_back(&run);
    names += (names.empty() ? "" : ", ") + run.name;
  }
  Page page{.title = fmt::format("{} runs", runs.size()), .subtitle = names, .sections = {}};
  add_section(comparison_section(runs), page);
  Section limits{.title = "What limits the runs", .blocks = {}};
  if (StackedBars bars = breakdown_bars(all); !bars.bars.empty()) {
    limits.blocks.emplace_back(std::move(bars));
  }
  for (const RunData& run : runs) {
    if (run.number({"iteration_us"})) {
      Statement statement = limits_of(run);
      statement.headline = run.name + ": " + statement.headline;
      limits.blocks.emplace_back(std::move(statement));
    }
  }
  add_section(std::move(limits), page);
  if (Charts charts = learning_charts(all); !charts.charts.empty()) {
    add_section({.title = "Learning", .blocks = {std::move(charts)}}, page);
  }
  return page;
}

Result<std::string> write_report(const std::filesystem::path& folder) {
  const auto run = read_run(folder);
  if (!run) {
    return run.error();
  }
  const std::filesystem::path path = folder / "report.html";
  if (const auto written = write_file(path, to_html(run_page(*run))); !written) {
    return written.error();
  }
  return path.string();
}

}  // namespace sluice
