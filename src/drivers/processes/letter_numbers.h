#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

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

// So many of them, with blanks between them.
template <std::size_t N>
std::array<std::int64_t, N> numbers_of(std::size_t rank, std::string_view words) {
  std::array<std::int64_t, N> numbers{};
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t end = i + 1 < N ? words.find(' ') : words.size();
    numbers[i] = number_of(rank, words.substr(0, end));
    words.remove_prefix(std::min(words.size(), end == std::string_view::npos ? end : end + 1));
  }
  return numbers;
}

}  // namespace sluice
