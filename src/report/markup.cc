#include "report/markup.h"

#include "base/text.h"

namespace sluice {
namespace {

void append_escaped(char c, std::string& result) {
  switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default:
      result += c;
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string valid(text);
  for (std::size_t at = utf8_length(valid); at < valid.size(); at = utf8_length(valid)) {
    valid[at] = '?';
  }
  std::string result;
  for (const char c : one_line(valid)) {
    append_escaped(c, result);
  }
  return result;
}

}  // namespace sluice
