#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Replaces every control character by a blank, so that the text stays on one line.
std::string one_line(std::string text);

// In single quotes, which no shell expands: one word for it.
std::string shell_word(const std::string& text);

// The number of bytes before the first one that is not valid UTF-8.
std::size_t utf8_length(std::string_view text);

// The name most likely meant by a mistyped word; empty if none is close. Close means one typing
// error, or two in a word of six letters or more. An error is a wrong, missing or extra letter, or
// two neighbours swapped.
std::string nearest(std::string_view word, std::span<const std::string> names);

// The end of a message about an unknown word: `; did you mean NAME?`, or nothing.
std::string suggestion(std::string_view word, std::span<const std::string> names);

// The entries of a list with commas between them: "a,,b" has three. An empty text has none.
std::vector<std::string> split_list(const std::string& text);

}  // namespace sluice
