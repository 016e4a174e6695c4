#include "drivers/hub/hub_texts.h"

#include <utility>

namespace sluice {

void HubTexts::take_all() {
  while (auto letter = connection_.take(channel_)) {
    if (!letter->text) {
      gone_.insert(letter->from);
      continue;
    }
    count_in(letter->from);
    texts_.at(letter->from).push_back(*std::move(letter->text));
  }
}

std::string HubTexts::next(std::size_t from) {
  std::string text = std::move(texts_[from].front());
  texts_[from].pop_front();
  return text;
}

void HubTexts::count_in(std::size_t rank) {
  if (gone_.erase(rank) > 0) {
    texts_.at(rank).clear();
  }
}

std::size_t HubTexts::leader() const {
  if (leader_ == texts_.size() || !is_lost(leader_)) {
    return leader_;
  }
  for (std::size_t r = 0; r < texts_.size(); ++r) {
    if (!is_lost(r)) {
      return r;
    }
  }
  return leader_;
}

void HubTexts::take_next_leader(std::size_t own) {
  leader_ = 0;
  while (leader_ != own && !has(leader_) && is_lost(leader_)) {
    ++leader_;
  }
}

}  // namespace sluice
