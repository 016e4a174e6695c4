#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/survey.h"

namespace sluice {

// What the ranks of a survey write to each other. Each letter says of which version it is and what
// it is; a reader knows how many ranks there are, and takes nothing that does not fit.

// The longest message that a survey times.
inline constexpr Bytes kLongestStroke = 64 << 20;

std::string write_hello(const Member& member);
Result<Member> read_hello(const std::string& text);

// Whom a rank reaches, by rank.
std::string write_reach(const std::vector<bool>& reach);
Result<std::vector<bool>> read_reach(const std::string& text, std::size_t ranks);

// Rank 0 tells another with whom to measure; no peer: the survey is over.
struct SurveyOrder {
  std::optional<std::size_t> peer;
  bool measures = false;  // or serves the one that does

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
// As it comes from this rank.
Result<SurveyResult> read_result(const std::string& text, std::size_t from, std::size_t ranks);

// What the measuring rank asks of the one that serves, before every stroke; as it lies in memory.
struct StrokeCommand {
  static constexpr std::uint64_t kVersion = 0x534c5356'00000001;  // "SLSV", 1

  std::uint64_t version = kVersion;
  Bytes out = 0;  // that follow; negative: this was all
  Bytes back = 0;
};
Result<void> check_command(const StrokeCommand& command);

}  // namespace sluice
