#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/topology.h"
#include "protocol/observer.h"
#include "report/names.h"
#include "report/time_line.h"

namespace sluice {

// What a trace keeps: these iterations of the first hosts.
struct TraceWindow {
  Iteration first = std::numeric_limits<Iteration>::min();
  Iteration last = std::numeric_limits<Iteration>::max();  // not itself
  std::size_t hosts = std::numeric_limits<std::size_t>::max();
};

// Keeps the spans of a run and writes them as Chrome trace events, which Perfetto opens. Each host
// is a process, with a lane for the compute of each worker, for the worker's copies to and from its
// accelerator if there are any, and for the host's egress, ingress and server. Overlapping spans of
// a lane are spread over further lanes below it.
class TraceWriter : public Observer {
 public:
  TraceWriter(const Topology& topology, std::vector<std::string> layer_names,
              ChunkNames chunk_names, const TraceWindow& window = {});

  void computed(NodeId worker, LayerId layer, Iteration iteration, Pass pass, Time begin,
                Time end) override;
  void waited(NodeId worker, LayerId layer, Iteration iteration, Time begin, Time end) override;
  void copied(NodeId worker, LayerId layer, Iteration iteration, Passage passage, Time begin,
              Time end) override;
  void sent(const Message& message, Time begin, Time end) override;
  void received(const Message& message, Time begin, Time end) override;
  void worked(const Work& work, Time begin, Time end) override;

  // The chunks have changed for the iterations after this one.
  void rename_chunks(Iteration after, ChunkNames names);
  // report() writes the spans of a host as text; adopt() adds them to the trace of another process,
  // which has seen nothing of that host.
  std::string report(HostId host);
  void adopt(HostId host, const std::string& report);

  // Call this after the run, when no observation is in progress.
  void write(std::ostream& out) const;
  Result<void> write(const std::filesystem::path& path) const;
  // The same as a picture, in milliseconds. If worker 0 has three iterations or more, it shows
  // those between the first and the last: their messages are all there.
  TimeLine time_line() const;

 private:
  enum class What : std::uint8_t { kForward, kBackward, kWait, kSent, kReceived, kWork, kIn, kOut };
  struct Span {
    Time begin{0};
    Time end{0};
    Iteration iteration = 0;
    Bytes bytes = 0;
    std::uint32_t subject = 0;  // a layer or a chunk
    std::uint32_t priority = 0;
    NodeId peer{};  // the other end of a message
    What what = What::kForward;
    std::uint8_t kind = 0;  // of the message or the work
  };
  using Lane = std::vector<Span>;
  // Only one thread at a time writes a lane; Observer's contract guarantees it.
  struct Worker {
    Lane compute;
    Lane copies;
  };
  struct Host {
    Lane egress;
    Lane ingress;
    Lane server;
  };
  class Printer;

  bool keeps(NodeId node, Iteration iteration) const;
  std::size_t hosts_kept() const { return std::min(hosts_.size(), window_.hosts); }
  // From when to when time_line() goes.
  std::pair<Time, Time> shown() const;
  TimeLine::Lane shown_lane(std::string name, Lane lane, Time from) const;
  // All lanes of a host: those of its workers, egress, ingress, server.
  std::vector<Lane*> lanes_of(HostId host);

  static Span span_of(LayerId layer, Iteration iteration, What what, Time begin, Time end);
  static Span span_of(const Message& message, NodeId peer, What what, Time begin, Time end);
  std::string label(const Span& span) const;
  std::string chunk_name(const Span& span) const;
  static std::size_t kind_of(What what);
  std::string details(const Span& span) const;

  Topology topology_;
  TraceWindow window_;
  std::vector<std::string> layer_names_;
  std::map<Iteration, ChunkNames> chunk_names_;  // by the iteration after which they hold
  std::vector<Worker> workers_;
  std::vector<Host> hosts_;
};

}  // namespace sluice
