#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/survey.h"
#include "wire/bad_message.h"

namespace sluice {

// The messages between the ranks of a survey. Each carries its version and its kind. A reader knows
// the number of ranks and rejects anything that does not fit.

// The longest message that a survey times.
inline constexpr Bytes kMaxPingPongBytes = 64 << 20;

// Unwraps the contents of a message from this rank; throws if it is malformed.
template <class T>
T trusted(Result<T> content, std::size_t rank) {
  if (!content) {
    throw BadMessage(rank, content.error().message());
  }
  return *std::move(content);
}

std::string write_hello(const RankInfo& info);
Result<RankInfo> read_hello(const std::string& text);

// Which ranks a rank reaches, by rank.
std::string write_reach(const std::vector<bool>& reach);
Result<std::vector<bool>> read_reach(const std::string& text, std::size_t ranks);

// Rank 0 tells another rank with whom to measure; no peer: the survey is over.
struct SurveyOrder {
  std::optional<std::size_t> peer;
  bool measures = false;  // false: it serves the rank that does

  bool operator==(const SurveyOrder&) const = default;
};
std::string write_order(const SurveyOrder& order);
Result<SurveyOrder> read_order(const std::string& text, std::size_t ranks);

// What a rank has measured with a peer, both ways; no links if no answer came.
struct SurveyResult {
  std::size_t peer = 0;
  std::vector<LinkTimings> links;
};
std::string write_result(const SurveyResult& result);
// Reads a result that this rank sent.
Result<SurveyResult> read_result(const std::string& text, std::size_t from, std::size_t ranks);

// What the measuring rank asks of the serving rank before every ping-pong. Sent as it is in memory.
struct PingPongCommand {
  static constexpr std::uint64_t kVersion = 0x534c5356'00000001;  // "SLSV", 1

  std::uint64_t version = kVersion;
  Bytes out = 0;  // that follow; negative: the measurement is over
  Bytes back = 0;
};
Result<void> check_command(const PingPongCommand& command);

}  // namespace sluice
