#include "runtime/mpi/vitals.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>

namespace sluice {
namespace {

using Json = nlohmann::json;

Json to_json(const std::optional<Underway>& underway) {
  return underway ? Json{static_cast<int>(underway->kind), underway->layer.index(), underway->peer,
                         underway->seconds}
                  : Json();
}

std::optional<Underway> to_underway(const Json& json) {
  if (json.is_null()) {
    return std::nullopt;
  }
  return Underway{static_cast<MessageKind>(json.at(0).get<int>()), LayerId(json.at(1)), json.at(2),
                  json.at(3)};
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
  Diagnosis(std::span<const Vital> vitals, const std::vector<Layer>& layers)
      : vitals_(vitals), layers_(layers) {}

  std::string of(std::size_t stuck) const {
    const Vital& vital = vitals_[stuck];
    return fmt::format("{} has waited {:.0f} s for layer {} of iteration {}: {}", name(stuck),
                       vital.still_seconds, layer(vital.worker.layer), vital.worker.iteration,
                       cause(stuck));
  }

 private:
  std::string cause(std::size_t stuck) const {
    if (vitals_[stuck].incoming) {
      return arriving(stuck);
    }
    const Iteration awaited = vitals_[stuck].worker.iteration;
    for (std::size_t r = 0; r < vitals_.size(); ++r) {
      const Gate::Position& at = vitals_[r].worker;
      if (!at.waiting && at.iteration < awaited) {
        return fmt::format(
            "the gradient of {} is not in; for {:.0f} s it has not got beyond layer {} of "
            "iteration "
            "{}",
            name(r), vitals_[r].still_seconds, layer(at.layer), at.iteration);
      }
    }
    return transfer();
  }

  // The oldest of all that is under way.
  std::string transfer() const {
    std::optional<std::size_t> oldest;
    for (std::size_t r = 0; r < vitals_.size(); ++r) {
      const auto& out = vitals_[r].outgoing;
      if (out && (!oldest || out->seconds > vitals_[*oldest].outgoing->seconds)) {
        oldest = r;
      }
    }
    if (oldest) {
      const Underway& out = *vitals_[*oldest].outgoing;
      if (out.kind == MessageKind::kAllReduce) {
        return fmt::format("{} has been in the MPI_Allreduce of layer {} for {:.0f} s",
                           name(*oldest), layer(out.layer), out.seconds);
      }
      return fmt::format("{} has not got the {} of layer {} through to {} for {:.0f} s",
                         name(*oldest), content_of(out.kind), layer(out.layer), name(out.peer),
                         out.seconds);
    }
    for (std::size_t r = 0; r < vitals_.size(); ++r) {
      if (vitals_[r].incoming) {
        return arriving(r);
      }
    }
    return "nothing is under way";
  }

  std::string arriving(std::size_t rank) const {
    const Underway& in = *vitals_[rank].incoming;
    return fmt::format("{} of layer {} under way from {} to {} for {:.0f} s", content_of(in.kind),
                       layer(in.layer), name(in.peer), name(rank), in.seconds);
  }

  std::string name(std::size_t rank) const {
    return rank < vitals_.size() ? fmt::format("rank {} on {}", rank, vitals_[rank].host)
                                 : fmt::format("rank {}", rank);
  }
  std::string layer(LayerId id) const {
    return id.index() < layers_.size() ? layers_[id.index()].name : "?";
  }

  std::span<const Vital> vitals_;
  const std::vector<Layer>& layers_;
};

}  // namespace

std::string encode(const Vital& vital) {
  return Json{{"host", vital.host},
              {"layer", vital.worker.layer.index()},
              {"iteration", vital.worker.iteration},
              {"waiting", vital.worker.waiting},
              {"still", vital.still_seconds},
              {"out", to_json(vital.outgoing)},
              {"in", to_json(vital.incoming)}}
      .dump();
}

Vital decode_vital(const std::string& text) {
  const Json json = Json::parse(text);
  return {.host = json.at("host"),
          .worker = {LayerId(json.at("layer")), json.at("iteration"), json.at("waiting")},
          .still_seconds = json.at("still"),
          .outgoing = to_underway(json.at("out")),
          .incoming = to_underway(json.at("in"))};
}

std::optional<std::string> diagnose(std::span<const Vital> vitals, const std::vector<Layer>& layers,
                                    double patience_seconds) {
  const auto place = [&](std::size_t rank) {
    const Gate::Position& at = vitals[rank].worker;
    return std::tuple(at.iteration, at.layer, rank);
  };
  std::optional<std::size_t> stuck;
  for (std::size_t r = 0; r < vitals.size(); ++r) {
    const bool waits = vitals[r].worker.waiting && vitals[r].still_seconds >= patience_seconds;
    if (waits && (!stuck || place(r) < place(*stuck))) {
      stuck = r;
    }
  }
  return stuck ? std::optional(Diagnosis(vitals, layers).of(*stuck)) : std::nullopt;
}

}  // namespace sluice
