#include "drivers/hub/beginning.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

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

Beginning::Beginning(const std::string& text) {
  const std::vector<std::string> texts = split(text);
  for (std::size_t i = 0; i + 1 < texts.size(); i += 2) {
    note(texts[i], texts[i + 1]);
  }
}

std::string Beginning::take(const std::string& what) {
  const auto found = std::ranges::find(told_, what, &std::pair<std::string, std::string>::first);
  if (found == told_.end()) {
    throw std::runtime_error(fmt::format("nothing is known of {} when the run began", what));
  }
  std::string text = std::move(found->second);
  told_.erase(found);
  return text;
}

std::string Beginning::text() const {
  std::vector<std::string> texts;
  for (const auto& [what, told] : told_) {
    texts.insert(texts.end(), {what, told});
  }
  return joined(texts);
}

}  // namespace sluice
