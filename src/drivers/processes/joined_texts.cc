#include "drivers/processes/joined_texts.h"

#include <fmt/format.h>

#include "drivers/processes/letter_numbers.h"

namespace sluice {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += fmt::format("{} ", text.size()) + text;
  }
  return all;
}

std::vector<std::string> split(const std::string& all) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t blank = all.find(' ', at);
    const auto length =
        static_cast<std::size_t>(number_of(0, std::string_view(all).substr(at, blank - at)));
    texts.push_back(all.substr(blank + 1, length));
    at = blank + 1 + length;
  }
  return texts;
}

}  // namespace sluice
