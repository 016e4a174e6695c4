#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sluice {

// The text with a blank for every control character, so that it stays on one line.
std::string one_line(std::string text);

// How many bytes of the text are UTF-8 before the first that is not.
std::size_t utf8_length(std::string_view text);

// The name that a mistyped word most likely meant; empty if none is close. Close means one slip, or
// two in a word of six letters or more: a letter wrong, missing, too many, or swapped with the
// next.
std::string nearest(std::string_view word, std::span<const std::string> names);

// The end of a complaint about an unknown word: `; did you mean NAME?`, or nothing.
std::string suggestion(std::string_view word, std::span<const std::string> names);

}  // namespace sluice
