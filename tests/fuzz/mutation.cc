#include "fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace sluice::fuzz {
namespace {

// Longer inputs find nothing that shorter ones do not.
constexpr std::size_t kLongest = 1 << 16;

std::size_t below(std::size_t end, Random& random) {
  return end == 0 ? 0 : static_cast<std::size_t>(random.next() % end);
}

void put_number(std::string& input, Random& random) {
  constexpr std::array<std::uint64_t, 8> kLimits{
      0, 1, 0x7f, 0xff, 0x7fff'ffff, 0xffff'ffff, 0x7fff'ffff'ffff'ffff, 0xffff'ffff'ffff'ffff};
  const std::uint64_t number = kLimits[below(kLimits.size(), random)];
  const std::size_t width = std::size_t{1} << below(4, random);
  if (input.size() < width) {
    return;
  }
  const std::size_t at = below(input.size() - width + 1, random);
  const bool little = random.next() % 2 == 0;
  for (std::size_t i = 0; i < width; ++i) {
    const auto shift = 8 * (little ? i : width - 1 - i);
    input[at + i] = static_cast<char>(number >> shift);
  }
}

void put_digits(std::string& input, Random& random) {
  constexpr std::array<std::string_view, 9> kTexts{
      "-1", "0", "1e308", "1e999", "nan", "18446744073709551616", "2147483648", "\"\"", "[]"};
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto from = input.begin() + static_cast<std::ptrdiff_t>(below(input.size(), random));
  const auto begin = std::find_if(from, input.end(), is_digit);
  const auto end = std::find_if_not(begin, input.end(), is_digit);
  input.replace(begin, end, kTexts[below(kTexts.size(), random)]);
}

void splice(std::string& input, std::string_view other, Random& random) {
  const std::size_t begin = below(other.size(), random);
  const std::size_t length = 1 + below(std::min<std::size_t>(other.size() - begin, 64), random);
  input.insert(below(input.size() + 1, random), other.substr(begin, length));
}

void change(std::string& input, std::string_view other, Random& random) {
  const std::size_t at = below(input.size(), random);
  switch (random.next() % 8) {
    case 0:
      if (!input.empty()) {
        input[at] = static_cast<char>(input[at] ^ (1 << below(8, random)));
      }
      return;
    case 1:
      if (!input.empty()) {
        input[at] = static_cast<char>(random.next());
      }
      return;
    case 2:
      return put_number(input, random);
    case 3:
      return put_digits(input, random);
    case 4:
      input.erase(at, 1 + below(16, random));
      return;
    case 5:
      input.resize(at);
      return;
    case 6:
      input.insert(at, input.substr(at, 1 + below(64, random)));
      return;
    default:
      return splice(input, other, random);
  }
}

}  // namespace

std::string mutated(std::span<const std::string> seeds, Random& random) {
  std::string input = seeds[below(seeds.size(), random)];
  const std::size_t changes = 1 + below(6, random);
  for (std::size_t i = 0; i < changes; ++i) {
    change(input, seeds[below(seeds.size(), random)], random);
  }
  input.resize(std::min(input.size(), kLongest));
  return input;
}

}  // namespace sluice::fuzz
