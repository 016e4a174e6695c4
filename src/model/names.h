#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice {

// How the user writes a value.
template <class E>
using Names = std::pair<E, std::string_view>;

template <class E, std::size_t N>
constexpr std::string_view name_of(const std::array<Names<E>, N>& names, E value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) {
      return name;
    }
  }
  return "?";
}

template <class E, std::size_t N>
constexpr std::optional<E> value_of(const std::array<Names<E>, N>& names, std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) {
      return value;
    }
  }
  return std::nullopt;
}

// ---- Tables of traits: one row for each value of an enum, in its order
// ---------------------------

// True if the rows are those of all values; the enum ends with kCount, which is no value.
template <class Row, std::size_t N>
constexpr bool has_all_values(const std::array<Row, N>& rows) {
  using E = decltype(Row::value);
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].value != static_cast<E>(i)) {
      return false;
    }
  }
  return N == static_cast<std::size_t>(E::kCount);
}

template <class Row, std::size_t N>
constexpr auto names_in(const std::array<Row, N>& rows) {
  std::array<Names<decltype(Row::value)>, N> names{};
  for (std::size_t i = 0; i < N; ++i) {
    names[i].first = rows[i].value;
    names[i].second = rows[i].name;
  }
  return names;
}

}  // namespace sluice
