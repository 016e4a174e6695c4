#include "cli/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

namespace sluice::cli {
namespace {

struct Line {
  std::string host;
  std::size_t slots = 1;
};

Result<std::size_t> slots_from(std::string_view digits, const std::string& line) {
  std::size_t slots = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, slots);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return Error(fmt::format("\"{}\": expected a host, and slots=N if it has several", line));
  }
  return slots;
}

Result<Line> parse(const std::string& text) {
  std::istringstream words(text);
  Line line;
  words >> line.host;
  if (const std::size_t colon = line.host.find(':'); colon != std::string::npos) {
    const auto slots = slots_from(std::string_view(line.host).substr(colon + 1), text);
    if (!slots) {
      return slots.error();
    }
    line.slots = *slots;
    line.host.resize(colon);
  }
  constexpr std::string_view kSlots = "slots=";
  for (std::string word; words >> word;) {
    const bool counts = word.starts_with(kSlots);
    if (!counts && !word.starts_with("max_slots=") && !word.starts_with("max-slots=")) {
      return Error(fmt::format("\"{}\": expected a host, and slots=N if it has several", text));
    }
    if (counts) {
      const auto slots = slots_from(std::string_view(word).substr(kSlots.size()), text);
      if (!slots) {
        return slots.error();
      }
      line.slots = *slots;
    }
  }
  return line;
}

}  // namespace

Result<std::vector<std::string>> hosts_in(const std::string& text, std::size_t processes) {
  std::vector<std::string> hosts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    const auto parsed = parse(line);
    if (!parsed) {
      return parsed.error();
    }
    hosts.insert(hosts.end(), std::min(parsed->slots, processes - hosts.size()), parsed->host);
  }
  if (hosts.size() < processes) {
    return Error(fmt::format("it has {} slots for {} processes", hosts.size(), processes));
  }
  return hosts;
}

}  // namespace sluice::cli
