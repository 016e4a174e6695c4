#include "drivers/hub/direct_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "drivers/hub/hub.h"
#include "drivers/realtime/start_thread.h"
#include "drivers/tcp/exchange.h"
#include "drivers/tcp/socket.h"
#include "drivers/tcp/token.h"

namespace sluice {
namespace {

// For the other process to come. What it waits for is on its way through the hub.
const Duration kOfferLimit = from_us(10e6);
const Duration kGreetingLimit = from_us(1e6);
// Memory is taken as bytes come, not as they are announced.
constexpr std::size_t kAtOnce = 1 << 20;
constexpr std::size_t kLongText = 1 << 16;
// How a letter begins.
constexpr char kText = 't';
constexpr char kOffer = 'o';

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

bool shows(const Socket& socket, const std::string& token) {
  std::string shown(token.size(), ' ');
  return read_all(socket, std::as_writable_bytes(std::span(shown)), kGreetingLimit) &&
         shown == token;
}

// Strangers are turned away. Whoever does not get all of the text finds that out itself.
void give(const Socket& listening, const std::string& token, const std::string& text) {
  for (;;) {
    const auto socket = accept_at(listening, kOfferLimit);
    if (!socket) {
      return;
    }
    if (shows(*socket, token)) {
      put_to_use(*socket);
      std::ignore = exchange_bytes(*socket, bytes_of(text), *socket, {}, kSilenceOutlived);
      return;
    }
  }
}

Result<std::string> fetch(const std::string& offer) {
  std::istringstream in(offer);
  Endpoint there;
  std::string token;
  std::size_t size = 0;
  if (!(in >> there.address >> there.port >> token >> size)) {
    return Error(fmt::format("\"{}\" is no offer of a text", offer));
  }
  auto socket = connect_to(there, kOfferLimit);
  if (!socket) {
    return socket.error();
  }
  if (auto greeted = write_all(*socket, bytes_of(token), kGreetingLimit); !greeted) {
    return greeted.error();
  }
  put_to_use(*socket);
  std::string text;
  while (text.size() < size) {
    const std::size_t begin = text.size();
    text.resize(std::min(size, begin + kAtOnce));
    const auto part = std::as_writable_bytes(std::span(text).subspan(begin));
    if (auto read = exchange_bytes(*socket, {}, *socket, part, kSilenceOutlived); !read) {
      return read.error();
    }
  }
  return text;
}

}  // namespace

std::string DirectTexts::letter_with(const std::string& text) {
  if (text.size() > kLongText) {
    if (const auto offered = offer(text)) {
      return kOffer + *offered;
    }
  }
  return kText + text;
}

Result<std::string> DirectTexts::text_of(const std::string& letter) {
  if (letter.starts_with(kOffer)) {
    return fetch(letter.substr(1));
  }
  return letter.empty() ? letter : letter.substr(1);
}

Result<std::string> DirectTexts::offer(std::string text) {
  auto listening = listen_at(address_);
  if (!listening) {
    return listening.error();
  }
  const Endpoint here = endpoint_of(*listening);
  const std::string token = draw_token();
  const std::string offer = fmt::format("{} {} {} {}", here.address, here.port, token, text.size());
  std::erase_if(offers_, [](const Offer& one) { return one.is_over->load(); });
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  offers_.push_back(
      {is_over, start_thread([listening = std::make_shared<Socket>(*std::move(listening)), token,
                              text = std::move(text), is_over] {
         give(*listening, token, text);
         *is_over = true;
       })});
  return offer;
}

}  // namespace sluice
