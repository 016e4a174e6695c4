#include "formats/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "formats/document.h"

namespace sluice {
namespace {

// Half of the time that a simulation can count.
constexpr double kLongestS = 1e6;
constexpr double kMaxFactor = 1e6;
constexpr std::int64_t kMaxIterations = 1'000'000'000'000;

const std::vector<std::pair<std::string, Fault::Kind>> kKinds{
    {"kill", Fault::Kind::kKill},          {"stop", Fault::Kind::kStop},
    {"slow-host", Fault::Kind::kSlowHost}, {"slow-link", Fault::Kind::kSlowLink},
    {"cut-link", Fault::Kind::kCutLink},   {"delay", Fault::Kind::kDelay},
};

Duration from_s(double seconds) { return from_us(seconds * 1e6); }

Form any_kind() {
  std::vector<std::string> words;
  for (const auto& [word, kind] : kKinds) {
    words.push_back(word);
  }
  return Form::word(std::move(words));
}

Fault read_fault(Fields& fields, std::size_t hosts) {
  Fault fault;
  const Form which = Form::integer(0, static_cast<std::int64_t>(hosts) - 1);
  const auto word = fields.get<std::string>("kind", any_kind());
  for (const auto& [name, kind] : kKinds) {
    fault.kind = word == name ? kind : fault.kind;
  }
  fault.host = HostId(static_cast<std::size_t>(fields.get<std::int64_t>("host", which)));
  fault.at = from_s(fields.get<double>("at_s", Form::number(0, kLongestS)));
  if (fault.kind != Fault::Kind::kKill) {
    fault.length = from_s(fields.get<double>("for_s", Form::number(0, kLongestS)));
  }
  if (fault.kind == Fault::Kind::kSlowHost || fault.kind == Fault::Kind::kSlowLink) {
    fault.factor = fields.get<double>("factor", Form::number(1, kMaxFactor));
  }
  if (fault.kind == Fault::Kind::kDelay) {
    fault.by = from_s(fields.get<double>("by_s", Form::number(0, kLongestS)));
  }
  return fault;
}

void read_list(const Json& list, std::size_t hosts, Fields& parent, Faults& faults) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: fault[{}]", parent.where(), i);
    if (!list[i].is_object()) {
      parent.merge(Error(where + ": expected a table [[fault]]"));
      continue;
    }
    Fields fields(list[i], where);
    faults.all.push_back(read_fault(fields, hosts));
    parent.merge(fields.done());
  }
  std::ranges::stable_sort(faults.all, {}, &Fault::at);
}

}  // namespace

Result<Faults> parse_faults(const std::string& text, const std::string& source, std::size_t hosts) {
  const auto table = parse_toml(text, source);
  if (!table) {
    return table.error();
  }
  const Form time = Form::number(0, kLongestS);
  Fields fields(*table, source);
  Faults faults;
  if (const Json* list = fields.optional("fault", Form::list())) {
    read_list(*list, hosts, fields, faults);
  }
  faults.detection = from_s(fields.get("detect_s", time, to_seconds(faults.detection)));
  faults.regrouping = from_s(fields.get("regroup_s", time, to_seconds(faults.regrouping)));
  faults.restart = from_s(fields.get("restart_s", time, to_seconds(faults.restart)));
  faults.checkpoint = from_s(fields.get("checkpoint_s", time, to_seconds(faults.checkpoint)));
  faults.iterations =
      fields.get<std::int64_t>("iterations", Form::integer(1, kMaxIterations), faults.iterations);
  faults.kill_every_s =
      fields.get<double>("kill_every_h", Form::number(1e-6, 1e9), faults.kill_every_s / 3600) *
      3600;
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  return faults;
}

Result<Faults> read_faults(const std::string& path, std::size_t hosts) {
  const auto text = read_file(path);
  return text ? parse_faults(*text, path, hosts) : text.error();
}

}  // namespace sluice
