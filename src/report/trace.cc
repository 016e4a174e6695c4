#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"

namespace sluice {
namespace {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Readers parse times as doubles and add `ts` and `dur`. So all ends of spans are rounded down to
// multiples of 2^-10 us: for a hundred days, such numbers and their sums are exact doubles, and
// spans that touch or nest still do.
constexpr std::int64_t kTicksPerUs = 1024;

std::int64_t ticks(Time t) {
  constexpr std::int64_t kPerUs = 1'000'000;
  return t.count() / kPerUs * kTicksPerUs + t.count() % kPerUs * kTicksPerUs / kPerUs;
}

// With all ten decimals.
std::string microseconds(std::int64_t ticks) {
  constexpr std::int64_t kTick = 10'000'000'000 / kTicksPerUs;
  return fmt::format("{}.{:010}", ticks / kTicksPerUs, ticks % kTicksPerUs * kTick);
}

}  // namespace

// Numbers processes and lanes from 1, since viewers treat 0 specially; no two lanes share a number,
// even in different processes.
class TraceWriter::Printer {
 public:
  Printer(const TraceWriter& trace, std::ostream& out) : trace_(trace), out_(out) {
    out_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
  }
  ~Printer() { out_ << "\n]}\n"; }
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;

  void begin_process(const std::string& name) {
    ++process_;
    describe("process", name, 0, process_);
  }

  // First fit of spans in order of time: a span that overlaps goes to the next free lane, so spans
  // without overlaps stay in one lane.
  void print_lane(const std::string& name, Lane spans) {
    std::ranges::stable_sort(spans, {}, &Span::begin);
    std::vector<Time> free_from{Time(0)};
    const int first = lane_ + 1;
    for (const Span& span : spans) {
      auto fit = std::ranges::find_if(free_from, [&](Time t) { return t <= span.begin; });
      if (fit == free_from.end()) {
        fit = free_from.insert(fit, Time(0));
      }
      *fit = span.end;
      print(span, first + static_cast<int>(fit - free_from.begin()));
    }
    for (std::size_t i = 0; i < free_from.size(); ++i) {
      ++lane_;
      describe("thread", i == 0 ? name : fmt::format("{} ({})", name, i + 1), lane_, lane_);
    }
  }

 private:
  void print(const Span& span, int lane) {
    emit(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}})", process_,
         lane, microseconds(ticks(span.begin)), microseconds(ticks(span.end) - ticks(span.begin)),
         json_text(trace_.label(span)), trace_.details(span));
  }
  // The name and the place of a process or a lane.
  void describe(const char* what, const std::string& name, int lane, int place) {
    emit(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_name","args":{{"name":{}}}}})", process_, lane,
         what, json_text(name));
    emit(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_sort_index","args":{{"sort_index":{}}}}})",
         process_, lane, what, place);
  }
  template <class... Args>
  void emit(fmt::format_string<Args...> format, Args&&... args) {
    out_ << separator_ << fmt::format(format, std::forward<Args>(args)...);
    separator_ = ",\n";
  }

  const TraceWriter& trace_;
  std::ostream& out_;
  const char* separator_ = "\n";
  int process_ = 0;
  int lane_ = 0;
};

TraceWriter::TraceWriter(const Topology& topology, std::vector<std::string> layer_names,
                         ChunkNames chunk_names, const TraceWindow& window)
    : topology_(topology),
      window_(window),
      layer_names_(std::move(layer_names)),
      workers_(topology.workers()),
      hosts_(topology.hosts()) {
  rename_chunks(std::numeric_limits<Iteration>::min(), std::move(chunk_names));
}

void TraceWriter::rename_chunks(Iteration after, ChunkNames names) {
  chunk_names_[after] = std::move(names);
}

void TraceWriter::computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                           Time end) {
  if (!keeps(worker, iteration)) {
    return;
  }
  workers_[worker.index()].compute.push_back(span_of(
      layer, iteration, pass == Pass::kForward ? What::kForward : What::kBackward, begin, end));
}

void TraceWriter::waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) {
  if (!keeps(worker, iteration)) {
    return;
  }
  workers_[worker.index()].compute.push_back(span_of(layer, iteration, What::kWait, begin, end));
}

void TraceWriter::copied(NodeId worker, LayerId layer, Iteration iteration, Passage passage,
                         Time begin, Time end) {
  if (!keeps(worker, iteration)) {
    return;
  }
  workers_[worker.index()].copies.push_back(span_of(
      layer, iteration, passage == Passage::kToDevice ? What::kIn : What::kOut, begin, end));
}

void TraceWriter::sent(const Message& message, Time begin, Time end) {
  if (!keeps(message.from, message.iteration)) {
    return;
  }
  hosts_[topology_.host_of(message.from).index()].egress.push_back(
      span_of(message, message.to, What::kSent, begin, end));
}

void TraceWriter::received(const Message& message, Time begin, Time end) {
  if (!keeps(message.to, message.iteration)) {
    return;
  }
  hosts_[topology_.host_of(message.to).index()].ingress.push_back(
      span_of(message, message.from, What::kReceived, begin, end));
}

void TraceWriter::worked(const Work& work, Time begin, Time end) {
  if (!keeps(work.node, work.iteration)) {
    return;
  }
  hosts_[topology_.host_of(work.node).index()].server.push_back(
      {.begin = begin,
       .end = end,
       .iteration = work.iteration,
       .bytes = work.range.size() * kFloatBytes,
       .subject = static_cast<std::uint32_t>(work.chunk.index()),
       .priority = work.priority,
       .what = What::kWork,
       .kind = static_cast<std::uint8_t>(work.kind)});
}

bool TraceWriter::keeps(NodeId node, Iteration iteration) const {
  return iteration >= window_.first && iteration < window_.last &&
         topology_.host_of(node).index() < window_.hosts;
}

TraceWriter::Span TraceWriter::span_of(LayerId layer, Iteration iteration, What what, Time begin,
                                       Time end) {
  return {.begin = begin,
          .end = end,
          .iteration = iteration,
          .subject = static_cast<std::uint32_t>(layer.index()),
          .what = what};
}

TraceWriter::Span TraceWriter::span_of(const Message& message, NodeId peer, What what, Time begin,
                                       Time end) {
  return {.begin = begin,
          .end = end,
          .iteration = message.iteration,
          .bytes = message.payload_bytes,
          .subject = static_cast<std::uint32_t>(message.chunk.index()),
          .priority = message.priority,
          .peer = peer,
          .what = what,
          .kind = static_cast<std::uint8_t>(message.kind)};
}

std::string TraceWriter::label(const Span& span) const {
  switch (span.what) {
    case What::kForward:
      return "forward " + layer_names_[span.subject];
    case What::kBackward:
      return "backward " + layer_names_[span.subject];
    case What::kWait:
      return "wait for " + layer_names_[span.subject];
    case What::kIn:
      return "parameters of " + layer_names_[span.subject];
    case What::kOut:
      return "gradient of " + layer_names_[span.subject];
    case What::kSent:
    case What::kReceived:
      return fmt::format("{} {}", name_of(static_cast<MessageKind>(span.kind)), chunk_name(span));
    case What::kWork:
      return fmt::format("{} {}", name_of(static_cast<WorkKind>(span.kind)), chunk_name(span));
  }
  return "?";
}

std::string TraceWriter::chunk_name(const Span& span) const {
  return std::prev(chunk_names_.lower_bound(span.iteration))->second(ChunkId(span.subject));
}

std::string TraceWriter::details(const Span& span) const {
  std::string text = fmt::format(R"("iteration":{})", span.iteration);
  if (span.what == What::kSent || span.what == What::kReceived || span.what == What::kWork) {
    text += fmt::format(R"(,"bytes":{},"priority":{})", span.bytes, span.priority);
  }
  if (span.what == What::kSent || span.what == What::kReceived) {
    text += fmt::format(R"(,"{}":"{}")", span.what == What::kSent ? "to" : "from",
                        name_of(span.peer, topology_));
  }
  return text;
}

std::vector<TraceWriter::Lane*> TraceWriter::lanes_of(HostId host) {
  std::vector<Lane*> lanes;
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    if (topology_.host_of(topology_.worker(rank)) == host) {
      lanes.insert(lanes.end(), {&workers_[rank].compute, &workers_[rank].copies});
    }
  }
  Host& of_host = hosts_[host.index()];
  lanes.insert(lanes.end(), {&of_host.egress, &of_host.ingress, &of_host.server});
  return lanes;
}

std::string TraceWriter::report(HostId host) {
  auto report = nlohmann::json::array();
  for (const Lane* lane : lanes_of(host)) {
    auto spans = nlohmann::json::array();
    for (const Span& span : *lane) {
      spans.push_back({span.begin.count(), span.end.count(), span.iteration, span.bytes,
                       span.subject, span.priority, span.peer.index(), static_cast<int>(span.what),
                       span.kind});
    }
    report.push_back(std::move(spans));
  }
  return report.dump();
}

void TraceWriter::adopt(HostId host, const std::string& report) {
  const auto json = nlohmann::json::parse(report);
  const std::vector<Lane*> lanes = lanes_of(host);
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    for (const auto& span : json.at(l)) {
      lanes[l]->push_back({.begin = Time(span.at(0).get<std::int64_t>()),
                           .end = Time(span.at(1).get<std::int64_t>()),
                           .iteration = span.at(2),
                           .bytes = span.at(3),
                           .subject = span.at(4),
                           .priority = span.at(5),
                           .peer = NodeId(span.at(6).get<std::size_t>()),
                           .what = static_cast<What>(span.at(7).get<int>()),
                           .kind = span.at(8)});
    }
  }
}

void TraceWriter::write(std::ostream& out) const {
  Printer printer(*this, out);
  for (std::size_t h = 0; h < hosts_kept(); ++h) {
    printer.begin_process(fmt::format("host {}", h));
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      if (topology_.host_of(topology_.worker(rank)) != HostId(h)) {
        continue;
      }
      printer.print_lane(fmt::format("worker {} compute", rank), workers_[rank].compute);
      if (!workers_[rank].copies.empty()) {
        printer.print_lane(fmt::format("worker {} copies", rank), workers_[rank].copies);
      }
    }
    printer.print_lane("egress", hosts_[h].egress);
    printer.print_lane("ingress", hosts_[h].ingress);
    printer.print_lane("server", hosts_[h].server);
  }
}

Result<void> TraceWriter::write(const std::filesystem::path& path) const {
  return write_file(path, [this](std::ostream& out) { write(out); });
}

std::pair<Time, Time> TraceWriter::shown() const {
  std::map<Iteration, std::pair<Time, Time>> iterations;  // of worker 0
  for (const Span& span : workers_.front().compute) {
    const auto [at, is_new] = iterations.try_emplace(span.iteration, span.begin, span.end);
    auto& [begin, end] = at->second;
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  if (iterations.empty()) {
    return {Time(0), Time(0)};
  }
  const bool inner = iterations.size() > 2;
  const auto first = std::next(iterations.begin(), inner ? 1 : 0);
  const auto last = std::prev(iterations.end(), inner ? 2 : 1);
  return {first->second.first, std::max(first->second.second, last->second.second)};
}

// Indices of the kinds of time_line(), in the order of colours.
std::size_t TraceWriter::kind_of(What what) {
  switch (what) {
    case What::kForward:
      return 0;
    case What::kWait:
      return 1;
    case What::kWork:
      return 2;
    case What::kSent:
      return 3;
    case What::kReceived:
      return 4;
    case What::kBackward:
      return 5;
    case What::kIn:
    case What::kOut:
      return 6;
  }
  return 0;
}

TimeLine::Lane TraceWriter::shown_lane(std::string name, Lane lane, Time from) const {
  std::ranges::stable_sort(lane, {}, &Span::begin);
  TimeLine::Lane shown{.name = std::move(name), .spans = {}};
  for (const Span& span : lane) {
    if (span.end > from) {
      shown.spans.push_back({.begin = to_us(std::max(span.begin, from) - from) / 1000,
                             .end = to_us(span.end - from) / 1000,
                             .kind = kind_of(span.what),
                             .name = label(span)});
    }
  }
  return shown;
}

TimeLine TraceWriter::time_line() const {
  const auto [from, until] = shown();
  TimeLine chart{.title = "Some iterations of the run",
                 .unit = "ms",
                 .kinds = {"forward", "waiting", "sums and updates", "sending", "receiving",
                           "backward", "copies to and from the device"},
                 .length = to_us(until - from) / 1000,
                 .lanes = {}};
  const auto add = [&, begin = from](std::string name, const Lane& lane) {
    TimeLine::Lane shown = shown_lane(std::move(name), lane, begin);
    std::erase_if(shown.spans, [&](const auto& span) { return span.begin >= chart.length; });
    if (!shown.spans.empty()) {
      chart.lanes.push_back(std::move(shown));
    }
  };
  for (std::size_t h = 0; h < hosts_kept(); ++h) {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      if (topology_.host_of(topology_.worker(rank)) == HostId(h)) {
        add(fmt::format("host {}, worker {}: compute", h, rank), workers_[rank].compute);
        add(fmt::format("host {}, worker {}: copies", h, rank), workers_[rank].copies);
      }
    }
    add(fmt::format("host {}: out", h), hosts_[h].egress);
    add(fmt::format("host {}: in", h), hosts_[h].ingress);
    add(fmt::format("host {}: sums and updates", h), hosts_[h].server);
  }
  return chart;
}

}  // namespace sluice
