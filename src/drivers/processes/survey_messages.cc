#include "drivers/processes/survey_messages.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

namespace sluice {
namespace {

constexpr int kSurveyVersion = 1;

std::string message_of(const std::string& what, Json content) {
  return Json{{"survey", kSurveyVersion}, {"what", what}, {"content", std::move(content)}}.dump();
}

// Reads the content of a message; malformed content is an error too.
template <class T>
Result<T> read_message(const std::string& text, const std::string& what,
                       const std::function<Result<T>(const Json&)>& read) {
  const Json message = Json::parse(text, nullptr, false);
  if (!message.is_object() || !message.contains("survey")) {
    return Error("not a message of a survey");
  }
  if (message["survey"] != kSurveyVersion) {
    return Error(
        fmt::format("its survey version is {}, expected {}; run the same sluice on "
                    "all hosts",
                    message["survey"].dump(), kSurveyVersion));
  }
  if (message.value("what", Json()) != what || !message.contains("content")) {
    return Error(fmt::format("it is {}, expected {}", message.value("what", Json()).dump(), what));
  }
  try {
    const Result<T> content = read(message["content"]);
    return content ? content : content.error().within(what);
  } catch (const Json::exception& e) {
    return Error(what + ": " + e.what());
  }
}

// A number from 0 to below a limit; none otherwise.
std::optional<std::int64_t> number_below(const Json& json, std::int64_t limit) {
  if (!json.is_number_integer()) {
    return std::nullopt;
  }
  const auto number = json.get<std::int64_t>();
  return number >= 0 && number < limit ? std::optional(number) : std::nullopt;
}

Json json_of(const Timing& t) { return {t.bytes, t.median.count(), t.min.count(), t.max.count()}; }

Result<Timing> timing_of_json(const Json& json) {
  constexpr std::int64_t kLongest = kForever.count();
  const auto bytes = number_below(json.at(0), kMaxPingPongBytes + 1);
  const auto median = number_below(json.at(1), kLongest);
  const auto min = number_below(json.at(2), kLongest);
  const auto max = number_below(json.at(3), kLongest);
  if (!bytes || !median || !min || !max) {
    return Error(fmt::format("{} is not a timing", json.dump()));
  }
  return Timing{*bytes, Duration(*median), Duration(*min), Duration(*max)};
}

Result<LinkTimings> link_of_json(const Json& json, std::size_t from, std::size_t to) {
  LinkTimings link{from, to, {}};
  for (const Json& entry : json) {
    const auto timing = timing_of_json(entry);
    if (!timing) {
      return timing.error();
    }
    if (!link.timings.empty() && timing->bytes <= link.timings.back().bytes) {
      return Error("the sizes of timings must increase");
    }
    link.timings.push_back(*timing);
  }
  if (link.timings.size() < 2 || link.timings.front().bytes != 0) {
    return Error("a link needs the time of a round trip and of some longer messages");
  }
  return link;
}

}  // namespace

std::string write_hello(const RankInfo& info) {
  Json content = to_json(info);
  content["boot_id"] = info.boot_id;
  return message_of("hello", std::move(content));
}

Result<RankInfo> read_hello(const std::string& text) {
  return read_message<RankInfo>(text, "hello",
                                [](const Json& content) { return rank_info_of(content); });
}

std::string write_reach(const std::vector<bool>& reach) { return message_of("reach", reach); }

Result<std::vector<bool>> read_reach(const std::string& text, std::size_t ranks) {
  return read_message<std::vector<bool>>(
      text, "reach", [&](const Json& content) -> Result<std::vector<bool>> {
        auto reach = content.get<std::vector<bool>>();
        if (reach.size() != ranks) {
          return Error(fmt::format("{} ranks, expected {}", reach.size(), ranks));
        }
        return reach;
      });
}

std::string write_order(const SurveyOrder& order) {
  return message_of(
      "order", {{"peer", order.peer ? Json(*order.peer) : Json()}, {"measures", order.measures}});
}

Result<SurveyOrder> read_order(const std::string& text, std::size_t ranks) {
  return read_message<SurveyOrder>(text, "order", [&](const Json& content) -> Result<SurveyOrder> {
    const Json& peer = content.at("peer");
    const auto rank = number_below(peer, static_cast<std::int64_t>(ranks));
    if (!peer.is_null() && !rank) {
      return Error(fmt::format("peer {} of {} ranks", peer.dump(), ranks));
    }
    SurveyOrder order{.peer = std::nullopt, .measures = content.at("measures").get<bool>()};
    if (rank) {
      order.peer = static_cast<std::size_t>(*rank);
    }
    return order;
  });
}

std::string write_result(const SurveyResult& result) {
  Json links = Json::array();
  for (const LinkTimings& link : result.links) {
    Json timings = Json::array();
    for (const Timing& timing : link.timings) {
      timings.push_back(json_of(timing));
    }
    links.push_back(std::move(timings));
  }
  return message_of("result", {{"peer", result.peer}, {"links", std::move(links)}});
}

Result<SurveyResult> read_result(const std::string& text, std::size_t from, std::size_t ranks) {
  return read_message<SurveyResult>(
      text, "result", [&](const Json& content) -> Result<SurveyResult> {
        const auto peer = number_below(content.at("peer"), static_cast<std::int64_t>(ranks));
        const Json& links = content.at("links");
        if (!peer || static_cast<std::size_t>(*peer) == from) {
          return Error(fmt::format("peer {} of {} ranks", content.at("peer").dump(), ranks));
        }
        if (!links.is_array() || (!links.empty() && links.size() != 2)) {
          return Error("expected the way there and the way back, or nothing");
        }
        SurveyResult result{static_cast<std::size_t>(*peer), {}};
        for (const bool back : {false, true}) {
          if (links.empty()) {
            break;
          }
          const auto link = link_of_json(links.at(back ? 1 : 0), back ? result.peer : from,
                                         back ? from : result.peer);
          if (!link) {
            return link.error();
          }
          result.links.push_back(*link);
        }
        return result;
      });
}

Result<void> check_command(const PingPongCommand& command) {
  if (command.version != PingPongCommand::kVersion) {
    return Error("not a command of this survey version; run the same sluice on all hosts");
  }
  if (command.out > kMaxPingPongBytes || command.back < 0 || command.back > kMaxPingPongBytes) {
    return Error(fmt::format("a ping-pong of {} bytes there and {} back, expected at most {}",
                             command.out, command.back, kMaxPingPongBytes));
  }
  return {};
}

}  // namespace sluice
