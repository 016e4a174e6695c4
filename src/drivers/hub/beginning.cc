#include "drivers/hub/beginning.h"

#include <algorithm>
#include <stdexcept>

#include "drivers/processes/joined_texts.h"

namespace sluice {

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
