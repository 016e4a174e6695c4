#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <thread>

#include "drivers/hub/direct_texts.h"
#include "drivers/tcp/seat.h"
#include "drivers/tcp/socket.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kLong = 5'000'001;

std::string long_text() {
  std::string text(kLong, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * i % 251);
  }
  return text;
}

// Where such a letter says that its text is.
Endpoint endpoint_in(const std::string& letter) {
  std::istringstream in(letter.substr(1));
  Endpoint endpoint;
  in >> endpoint.address >> endpoint.port;
  return endpoint;
}

TEST(DirectTextsThreads, AShortTextIsInItsLetterAndALongOneIsNot) {
  DirectTexts texts("127.0.0.1");
  for (const std::string& text : {std::string("short"), std::string(), long_text()}) {
    const std::string letter = texts.letter_with(text);
    EXPECT_LT(letter.size(), 200U);
    EXPECT_EQ(*DirectTexts::text_of(letter), text);
  }
}

TEST(DirectTextsThreads, OneThatIsLostHasSaidNothing) {
  EXPECT_THAT(*DirectTexts::text_of(""), IsEmpty());
}

TEST(DirectTextsThreads, TwoGiveEachOtherSeveralAtOnce) {
  DirectTexts one("127.0.0.1");
  DirectTexts other("127.0.0.1");
  const std::string first = one.letter_with(long_text());
  const std::string second = other.letter_with(long_text() + "second");
  const std::string third = one.letter_with(long_text() + "third");
  EXPECT_EQ(*DirectTexts::text_of(third), long_text() + "third");
  EXPECT_EQ(*DirectTexts::text_of(second), long_text() + "second");
  EXPECT_EQ(*DirectTexts::text_of(first), long_text());
}

TEST(DirectTextsThreads, StrangersAreTurnedAway) {
  DirectTexts texts("127.0.0.1");
  const std::string letter = texts.letter_with(long_text());
  const auto stranger = connect_to(endpoint_in(letter), from_us(1e6));
  ASSERT_TRUE(stranger);
  const std::string wrong(32, '0');
  ASSERT_TRUE(write_all(*stranger, std::as_bytes(std::span(wrong)), from_us(1e6)));
  std::byte one{};
  EXPECT_FALSE(read_all(*stranger, {&one, 1}, from_us(10e6))) << "it gets nothing";
  EXPECT_EQ(*DirectTexts::text_of(letter), long_text());
}

TEST(DirectTextsThreads, WhatIsNotThereAnyMoreIsAnError) {
  std::string letter;
  {
    DirectTexts texts("127.0.0.1");
    letter = texts.letter_with(long_text());
    EXPECT_TRUE(DirectTexts::text_of(letter));
  }
  const auto again = DirectTexts::text_of(letter);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr("cannot connect"));
}

TEST(DirectTextsThreads, ALetterThatMakesNoSenseIsAnError) {
  const auto text = DirectTexts::text_of("o127.0.0.1 what");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message(), HasSubstr("is no offer"));
}

TEST(DirectTextsThreads, AnOfferThatEndsEarlyIsAnError) {
  const auto listening = *listen_at("127.0.0.1");
  const Endpoint here = endpoint_of(listening);
  const std::string token(32, 't');
  const std::string letter = "o" + encode(Seat{here, token}) + " 1000000000000";
  std::jthread other([&] {
    const auto socket = *accept_at(listening, from_us(10e6));
    std::string shown(token.size(), ' ');
    EXPECT_TRUE(read_all(socket, std::as_writable_bytes(std::span(shown)), from_us(10e6)));
    EXPECT_EQ(shown, token);
  });
  EXPECT_FALSE(DirectTexts::text_of(letter)) << "and takes no memory for all that was announced";
}

}  // namespace
}  // namespace sluice
