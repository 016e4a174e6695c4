#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "drivers/hub/hub_connection.h"

namespace sluice {

// Letters over a channel of the connection.
class HubLetters final : public Letters {
 public:
  HubLetters(HubConnection& connection, std::uint32_t channel)
      : connection_(connection), channel_(channel) {}

  void send(std::size_t to, std::string text) override {
    connection_.send(to, channel_, std::move(text));
  }
  void send_to_all(const std::string& text) override { connection_.send_to_all(channel_, text); }
  std::optional<Letter> take() override {
    if (const std::string fault = connection_.fault(); !fault.empty()) {
      throw std::runtime_error(fault);
    }
    return connection_.take(channel_);
  }
  bool all_sent() override { return connection_.all_sent(); }
  void close() override {}

 private:
  HubConnection& connection_;
  const std::uint32_t channel_;
};

}  // namespace sluice
