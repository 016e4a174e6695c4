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
#include "drivers/tcp/seat.h"
#include "drivers/tcp/socket.h"

namespace sluice {
namespace {

// For the other process to come. What it waits for is on its way through the hub.
const Duration kOfferLimit = from_us(10e6);
// Memory is taken as bytes come, not as they are announced.
constexpr std::size_t kAtOnce = 1 << 20;
constexpr std::size_t kLongText = 1 << 16;
// How a letter begins.
constexpr char kText = 't';
constexpr char kOffer = 'o';

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Whoever does not get all of the text finds that out itself.
void give(const Socket& listening, const Seat& seat, const std::string& text) {
  if (const auto socket = accept_at(listening, seat, kOfferLimit)) {
    put_to_use(*socket);
    std::ignore = exchange_bytes(*socket, bytes_of(text), *socket, {}, kSilenceOutlived);
  }
}

Result<std::string> fetch(const std::string& offer) {
  const auto there = decode_seat(offer);
  std::size_t size = 0;
  std::istringstream in(offer.substr(there ? encode(*there).size() : 0));
  if (!there || !(in >> size)) {
    return Error(fmt::format("\"{}\" is no offer of a text", offer));
  }
  auto socket = connect_to(*there, kOfferLimit);
  if (!socket) {
    return socket.error();
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
  const Seat seat = seat_of(*listening);
  const std::string offer = fmt::format("{} {}", encode(seat), text.size());
  std::erase_if(offers_, [](const Offer& one) { return one.is_over->load(); });
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  offers_.push_back(
      {is_over, start_thread([listening = std::make_shared<Socket>(*std::move(listening)), seat,
                              text = std::move(text), is_over] {
         give(*listening, seat, text);
         *is_over = true;
       })});
  return offer;
}

}  // namespace sluice
