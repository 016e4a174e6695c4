#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "wire/bad_message.h"

namespace sluice {

// A number in a message from this rank.
inline std::int64_t number_of(std::size_t rank, std::string_view word) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (fault != std::errc{} || end != word.data() + word.size()) {
    throw BadMessage(rank, fmt::format("\"{}\" where a number belongs", word));
  }
  return number;
}

// Two of them, with a blank between them.
inline std::pair<std::int64_t, std::int64_t> two_numbers_of(std::size_t rank,
                                                            std::string_view words) {
  const std::size_t space = words.find(' ');
  const auto second = space == std::string_view::npos ? "" : words.substr(space + 1);
  return {number_of(rank, words.substr(0, space)), number_of(rank, second)};
}

}  // namespace sluice
