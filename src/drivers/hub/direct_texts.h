#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice {

// Texts from one process to another one. A short one goes through the hub; a long one goes over a
// connection of its own, since the hub would have to take all of it before it passes on anything.
class DirectTexts {
 public:
  // `address` is where this process listens for who fetches a text.
  explicit DirectTexts(std::string address) : address_(std::move(address)) {}

  // What goes through the hub. A long text waits for a while to be fetched.
  std::string letter_with(const std::string& text);
  // Fetches it if need be. A letter that is empty, because the other process was lost, has an empty
  // text.
  static Result<std::string> text_of(const std::string& letter);

 private:
  struct Offer {
    std::shared_ptr<std::atomic<bool>> is_over;
    std::jthread thread;
  };

  // What the other process needs to fetch the text.
  Result<std::string> offer(std::string text);

  const std::string address_;
  std::vector<Offer> offers_;
};

}  // namespace sluice
