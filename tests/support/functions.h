#pragma once

#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/source_reader.h"

namespace sluice {

struct Function {
  std::string name;
  std::size_t first_line;
  std::size_t lines;
};

// The name before the first parenthesis, if this is the head of a function and not of a type, a
// namespace or an expression.
inline std::optional<std::string> function_named_by(const std::string& head) {
  static const std::regex kNoFunction(
      R"(^\s*(template\s*<[^>]*>\s*)?(class|struct|enum|union|namespace|extern)\b)");
  static const std::regex kName(R"(([A-Za-z_~][\w:~]*)\s*\()");
  std::smatch name;
  if (head.find(')') == std::string::npos || std::regex_search(head, kNoFunction) ||
      !std::regex_search(head, name, kName)) {
    return std::nullopt;
  }
  return name.str(1);
}

// Empties preprocessor lines.
inline std::string without_directives(const std::string& code) {
  std::string rest;
  for (const std::string& line : lines_of(code)) {
    const std::size_t first = line.find_first_not_of(' ');
    rest += first != std::string::npos && line[first] == '#' ? "\n" : line + "\n";
  }
  return rest;
}

// The outermost functions of a file: the text in braces after the head of a function.
inline std::vector<Function> functions_in(const std::string& text) {
  struct Open {
    std::string head;
    std::size_t line;
    std::optional<std::string> function;
  };
  const std::string code = without_directives(code_only(text));
  std::vector<Function> functions;
  std::vector<Open> open;
  std::string head;
  bool inside = false;  // a function
  std::size_t line = 1;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    line += c == '\n' ? 1 : 0;
    if (c == '{') {
      const auto function = inside ? std::nullopt : function_named_by(head);
      open.push_back({std::exchange(head, ""), line, function});
      inside = inside || function.has_value();
    } else if (c == '}' && !open.empty()) {
      const Open closed = open.back();
      open.pop_back();
      const std::size_t next = code.find_first_not_of(" \n", i + 1);
      const bool initialises =
          closed.function && next != std::string::npos && (code[next] == ',' || code[next] == '{');
      head = initialises ? closed.head : "";
      if (closed.function) {
        inside = false;
        if (!initialises) {
          functions.push_back({*closed.function, closed.line, line - closed.line + 1});
        }
      }
    } else if (c == ';') {
      head.clear();
    } else {
      head += c;
    }
  }
  return functions;
}

}  // namespace sluice
