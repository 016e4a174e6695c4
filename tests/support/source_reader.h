#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/lines.h"

// Reads the sources of Sluice, for tests that inspect them.
namespace sluice {

inline const std::filesystem::path kSourceRoot(SLUICE_SOURCE_DIR);

// The end of the comment or literal that begins at `at`; `at` itself if none begins there.
inline std::size_t prose_end(std::string_view text, std::size_t at) {
  const auto past = [&](const std::string& closing, std::size_t from) {
    const std::size_t found = text.find(closing, from);
    return found == std::string_view::npos ? text.size() : found + closing.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) {
    return std::min(text.find('\n', at), text.size());
  }
  if (rest.starts_with("/*")) {
    return past("*/", at + 2);
  }
  if (rest.starts_with("R\"")) {
    const std::size_t open = rest.find('(');
    return past(")" + std::string(rest.substr(2, open - 2)) + "\"", at + open);
  }
  const char quote = rest.front();
  const bool separates_digits = quote == '\'' && at > 0 && std::isxdigit(text[at - 1]) != 0;
  if ((quote != '"' && quote != '\'') || separates_digits) {
    return at;
  }
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != quote) {
    end += text[end] == '\\' ? 2 : 1;
  }
  return std::min(end + 1, text.size());
}

// The text with comments and literals blanked out; line numbers stay the same.
inline std::string code_only(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = prose_end(text, at);
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(at),
        text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) { return c != '\n'; }, ' ');
    at = std::max(end, at + 1);
  }
  return text;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Source {
  std::string path;  // relative to the searched folder
  std::string text;
};

// All files under a folder with one of these extensions.
inline std::vector<Source> sources_under(const std::filesystem::path& root,
                                         const std::vector<std::string>& extensions = {".h",
                                                                                       ".cc"}) {
  std::vector<Source> sources;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (std::ranges::find(extensions, entry.path().extension().string()) != extensions.end()) {
      sources.push_back({entry.path().lexically_relative(root).string(), text_of(entry.path())});
    }
  }
  return sources;
}

}  // namespace sluice
