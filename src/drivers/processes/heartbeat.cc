#include "drivers/processes/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

namespace sluice {
namespace {

using Json = nlohmann::json;

Json to_json(const std::optional<InFlight>& in_flight) {
  return in_flight ? Json{static_cast<int>(in_flight->kind), in_flight->layer.index(),
                          in_flight->peer, in_flight->seconds}
                   : Json();
}

std::optional<InFlight> to_in_flight(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  const int kind = json.at(0);
  if (kind < 0 || kind >= kMessageKinds) {
    throw std::out_of_range(fmt::format("a message of kind {}", kind));
  }
  return InFlight{static_cast<MessageKind>(kind), LayerId(json.at(1)), json.at(2), json.at(3)};
}

Json to_json(const std::optional<Gate::Position>& at) {
  return at ? Json{at->layer.index(), at->iteration, at->waiting} : Json();
}

std::optional<Gate::Position> to_position(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return Gate::Position{LayerId(json.at(0)), json.at(1), json.at(2)};
}

const char* content_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kPush:
    case MessageKind::kReduce:
      return "gradient";
    case MessageKind::kGather:
      return "summed gradient";
    default:
      return "parameters";
  }
}

class Diagnosis {
 public:
  Diagnosis(std::span<const Heartbeat> heartbeats, const std::vector<Layer>& layers)
      : heartbeats_(heartbeats), layers_(layers) {}

  std::string of(std::size_t stuck) const {
    const Heartbeat& heartbeat = heartbeats_[stuck];
    return fmt::format("{} has waited {:.0f} s for layer {} of iteration {}: {}", name(stuck),
                       heartbeat.still_seconds, layer(heartbeat.worker->layer),
                       heartbeat.worker->iteration, cause(stuck));
  }

 private:
  std::string cause(std::size_t stuck) const {
    if (heartbeats_[stuck].incoming) {
      return arriving(stuck);
    }
    const Iteration awaited = heartbeats_[stuck].worker->iteration;
    for (std::size_t r = 0; r < heartbeats_.size(); ++r) {
      const auto& at = heartbeats_[r].worker;
      if (at && !at->waiting && at->iteration < awaited) {
        return fmt::format(
            "the gradient of {} is not in; for {:.0f} s it has not got beyond layer {} of "
            "iteration "
            "{}",
            name(r), heartbeats_[r].still_seconds, layer(at->layer), at->iteration);
      }
    }
    return transfer();
  }

  // The oldest transfer in flight.
  std::string transfer() const {
    std::optional<std::size_t> oldest;
    for (std::size_t r = 0; r < heartbeats_.size(); ++r) {
      const auto& out = heartbeats_[r].outgoing;
      if (out && (!oldest || out->seconds > heartbeats_[*oldest].outgoing->seconds)) {
        oldest = r;
      }
    }
    if (oldest) {
      const InFlight& out = *heartbeats_[*oldest].outgoing;
      if (out.kind == MessageKind::kAllReduce) {
        return fmt::format("{} has been in the MPI_Allreduce of layer {} for {:.0f} s",
                           name(*oldest), layer(out.layer), out.seconds);
      }
      return fmt::format("{} has not got the {} of layer {} through to {} for {:.0f} s",
                         name(*oldest), content_of(out.kind), layer(out.layer), name(out.peer),
                         out.seconds);
    }
    for (std::size_t r = 0; r < heartbeats_.size(); ++r) {
      if (heartbeats_[r].incoming) {
        return arriving(r);
      }
    }
    return "nothing is in flight";
  }

  std::string arriving(std::size_t rank) const {
    const InFlight& in = *heartbeats_[rank].incoming;
    return fmt::format("{} of layer {} in flight from {} to {} for {:.0f} s", content_of(in.kind),
                       layer(in.layer), name(in.peer), name(rank), in.seconds);
  }

  std::string name(std::size_t rank) const {
    return rank < heartbeats_.size() ? fmt::format("rank {} on {}", rank, heartbeats_[rank].host)
                                     : fmt::format("rank {}", rank);
  }
  std::string layer(LayerId id) const {
    return id.index() < layers_.size() ? layers_[id.index()].name : "?";
  }

  std::span<const Heartbeat> heartbeats_;
  const std::vector<Layer>& layers_;
};

}  // namespace

std::string describe_silence(std::size_t rank, const std::string& host, Duration silence) {
  return fmt::format(
      "rank {}{} has not been heard of for {:.0f} s: it has died, or the network to it is cut",
      rank, host.empty() ? "" : " on " + host, to_seconds(silence));
}

std::string encode(const Heartbeat& heartbeat) {
  return Json{{"host", heartbeat.host},
              {"worker", to_json(heartbeat.worker)},
              {"still", heartbeat.still_seconds},
              {"out", to_json(heartbeat.outgoing)},
              {"in", to_json(heartbeat.incoming)}}
      .dump();
}

Result<Heartbeat> decode_heartbeat(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    return Heartbeat{.host = json.at("host"),
                     .worker = to_position(json.at("worker")),
                     .still_seconds = json.at("still"),
                     .outgoing = to_in_flight(json.at("out")),
                     .incoming = to_in_flight(json.at("in"))};
  } catch (const std::exception& e) {
    return Error(fmt::format("not a valid heartbeat: {}", e.what()));
  }
}

std::optional<std::string> diagnose(std::span<const Heartbeat> heartbeats,
                                    const std::vector<Layer>& layers, double patience_seconds,
                                    bool open) {
  const auto place = [&](std::size_t rank) {
    const auto& at = heartbeats[rank].worker;
    return std::tuple(at->iteration, at->layer, rank);
  };
  std::optional<std::size_t> stuck;
  for (std::size_t r = 0; r < heartbeats.size(); ++r) {
    const auto& at = heartbeats[r].worker;
    const bool waits = at && at->waiting && heartbeats[r].still_seconds >= patience_seconds;
    if (waits && (!stuck || place(r) < place(*stuck))) {
      stuck = r;
    }
  }
  if (!stuck) {
    return std::nullopt;
  }
  const bool others_compute = std::ranges::any_of(heartbeats, [&](const Heartbeat& other) {
    return other.worker && !other.worker->waiting &&
           other.worker->iteration < heartbeats[*stuck].worker->iteration;
  });
  return open && others_compute ? std::nullopt
                                : std::optional(Diagnosis(heartbeats, layers).of(*stuck));
}

std::optional<std::string> describe_early_end(std::span<const std::optional<Iteration>> done,
                                              std::span<const Heartbeat> heartbeats) {
  for (std::size_t r = 0; r < done.size(); ++r) {
    const auto further = std::ranges::find_if(heartbeats, [&](const Heartbeat& other) {
      return done[r] && heartbeats[r].worker && other.worker && other.worker->iteration > *done[r];
    });
    if (further != heartbeats.end()) {
      return fmt::format(
          "rank {} has ended its training after {} steps, but rank {} goes on: all processes must "
          "take the same number of steps",
          r, *done[r], further - heartbeats.begin());
    }
  }
  return std::nullopt;
}

}  // namespace sluice
