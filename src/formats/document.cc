#include "formats/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace sluice {
namespace {

// Fits on one line, and is shortened if long.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  if (value.is_number_float()) {
    return fmt::format("{}", value.get<double>());
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) {
    std::size_t end = kLongest;
    while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end;
    }
    text.resize(end);
    text += "...";
  }
  return text;
}

// A key as the file has it; quoted if it would break the line.
std::string shown_key(const std::string& key) {
  const std::string quoted = shown(Json(key));
  return quoted == '"' + key + '"' && !key.empty() ? key : quoted;
}

// TOML allows non-ASCII letters in comments and quotes only, and toml++ 3.3 fails badly on others,
// so the text is checked first. Quotes are taken to end with their line, so multi-line strings must
// be plain ASCII.
std::optional<std::size_t> line_of_stray_letter(const std::string& text) {
  std::size_t line = 1;
  char inside = 0;  // the open quote, or # in a comment
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      inside = 0;
    } else if (inside == 0 && static_cast<unsigned char>(c) >= 0x80U) {
      return line;
    } else if (inside == 0 && (c == '#' || c == '"' || c == '\'')) {
      inside = c;
    } else if (inside == '"' && c == '\\' && text[i + 1] != '\n') {
      ++i;
    } else if (inside == c && c != '#') {
      inside = 0;
    }
  }
  return std::nullopt;
}

Json to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table) {
      object[std::string(key.str())] = to_json(value);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const auto& value : *array) {
      list.push_back(to_json(value));
    }
    return list;
  }
  if (const auto* integer = node.as_integer()) {
    return integer->get();
  }
  if (const auto* number = node.as_floating_point()) {
    return number->get();
  }
  if (const auto* boolean = node.as_boolean()) {
    return boolean->get();
  }
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  std::ostringstream date;
  node.visit([&](const auto& value) { date << value; });
  return date.str();
}

bool is_int64(const Json& value) {
  return value.is_number_unsigned() ? std::in_range<std::int64_t>(value.get<std::uint64_t>())
                                    : value.is_number_integer();
}

}  // namespace

Result<Json> parse_json(const std::string& text, const std::string& source) {
  std::vector<std::set<std::string>> open_objects;
  std::optional<std::string> twice;
  const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      open_objects.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_objects.pop_back();
    } else if (event == Json::parse_event_t::key && !open_objects.back().insert(parsed).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  try {
    Json value = Json::parse(text, watch);
    if (twice) {
      return Error(source + ": " + shown_key(*twice) + ": occurs twice in one object");
    }
    return value;
  } catch (const Json::exception& e) {
    std::string what = e.what();
    what.erase(0, what.find("] ") + 2);
    return Error(source + ": is not JSON: " + what);
  }
}

Result<Json> parse_toml(const std::string& text, const std::string& source) {
  if (const auto line = line_of_stray_letter(text)) {
    return Error(fmt::format(
        "{}: is not TOML: line {}: a non-ASCII letter, expected in quotes only", source, *line));
  }
  try {
    return to_json(toml::parse(text));
  } catch (const toml::parse_error& e) {
    const auto at = e.source().begin;
    return Error(fmt::format("{}: is not TOML: line {}, column {}: {}", source, at.line, at.column,
                             one_line(std::string(e.description()))));
  }
}

Form Form::integer(std::int64_t min, std::int64_t max) {
  Form form(Kind::kInteger);
  form.min_ = min;
  form.max_ = max;
  return form;
}

Form Form::number(double min, double max) {
  Form form(Kind::kNumber);
  form.min_ = min;
  form.max_ = max;
  return form;
}

Form Form::word(std::vector<std::string> words) {
  return Form(Kind::kWord).or_word(std::move(words));
}

Form Form::or_word(std::vector<std::string> words) const {
  Form form = *this;
  form.words_ = std::move(words);
  return form;
}

std::string Form::expected() const {
  const auto range = [&] { return fmt::format("from {} to {}", shown(min_), shown(max_)); };
  std::string words = fmt::format("{}", fmt::join(words_, ", "));
  std::string other;
  switch (kind_) {
    case Kind::kWord:
      return words_.size() == 1 ? words : "one of " + words;
    case Kind::kText:
      other = "text";
      break;
    case Kind::kSwitch:
      other = "true or false";
      break;
    case Kind::kInteger:
      other = "an integer " + range();
      break;
    case Kind::kNumber:
      other = "a number " + range();
      break;
    case Kind::kTable:
      other = "a table of keys";
      break;
    case Kind::kList:
      other = "a list with at least one element";
      break;
  }
  return words_.empty() ? other : other + " or " + words;
}

bool Form::accepts(const Json& value) const {
  const auto* word = value.get_ptr<const std::string*>();
  if (word != nullptr && std::find(words_.begin(), words_.end(), *word) != words_.end()) {
    return true;
  }
  switch (kind_) {
    case Kind::kWord:
      return false;
    case Kind::kText:
      return value.is_string();
    case Kind::kSwitch:
      return value.is_boolean();
    case Kind::kInteger:
      return is_int64(value) && value >= min_ && value <= max_;
    case Kind::kNumber:
      return value.is_number() && std::isfinite(value.get<double>()) && value >= min_ &&
             value <= max_;
    case Kind::kTable:
      return value.is_object();
    case Kind::kList:
      return value.is_array() && !value.empty();
  }
  return false;
}

Result<void> Form::check(const Json& value) const {
  if (accepts(value)) {
    return {};
  }
  std::string complaint = "is " + shown(value) + ", expected " + expected();
  if (value.is_string()) {
    complaint += suggestion(value.get<std::string>(), words_);
  }
  return Error(complaint);
}

Fields::Fields(const Json& table, std::string where) : table_(table), where_(std::move(where)) {
  if (const auto checked = Form::table().check(table); !checked) {
    first_ = checked.error().within(where_);
  }
}

const Json* Fields::required(const std::string& key, const Form& form) {
  const Json* value = optional(key, form);
  if (value == nullptr) {
    complain(key, "is missing, expected " + form.expected());
  }
  return value;
}

const Json* Fields::optional(const std::string& key, const Form& form) {
  known_.push_back(key);
  if (!table_.is_object() || !table_.contains(key)) {
    return nullptr;
  }
  const Json& value = table_[key];
  if (const auto checked = form.check(value); !checked) {
    complain(key, checked.error().message());
    return nullptr;
  }
  return &value;
}

void Fields::complain(const std::string& key, const std::string& what) {
  if (!first_) {
    first_ = Error(where_ + ": " + key + ": " + what);
  }
}

void Fields::merge(const Result<void>& part) {
  if (!first_ && !part) {
    first_ = part.error();
  }
}

Result<void> Fields::done() const {
  if (table_.is_object()) {
    for (const auto& [key, value] : table_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        return Error(where_ + ": " + shown_key(key) + ": is not a known key, expected one of " +
                     fmt::format("{}", fmt::join(known_, ", ")) + suggestion(key, known_));
      }
    }
  }
  if (first_) {
    return *first_;
  }
  return {};
}

}  // namespace sluice
