#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

// The values of a JSON or TOML file; TOML dates become text.
using Json = nlohmann::json;

// Errors name the source and the position in it.
Result<Json> parse_json(const std::string& text, const std::string& source);
Result<Json> parse_toml(const std::string& text, const std::string& source);

// Which values are accepted. The same forms serve files and flags.
class Form {
 public:
  enum class Kind { kText, kSwitch, kInteger, kNumber, kWord, kTable, kList };

  static Form text() { return Form(Kind::kText); }
  static Form on_or_off() { return Form(Kind::kSwitch); }
  static Form integer(std::int64_t min, std::int64_t max);
  // Finite, and between min and max inclusive.
  static Form number(double min, double max);
  static Form word(std::vector<std::string> words);
  static Form table() { return Form(Kind::kTable); }
  // With at least one element.
  static Form list() { return Form(Kind::kList); }
  // Also accepts one of these words.
  Form or_word(std::vector<std::string> words) const;

  Kind kind() const { return kind_; }
  const std::vector<std::string>& words() const { return words_; }
  // For instance "an integer from 1 to 8" or "one of fifo, priority".
  std::string expected() const;
  // For instance "is -3, expected an integer from 1 to 8".
  Result<void> check(const Json& value) const;

 private:
  explicit Form(Kind kind) : kind_(kind) {}
  bool accepts(const Json& value) const;

  Kind kind_;
  Json min_;
  Json max_;
  std::vector<std::string> words_;
};

// Reads the keys of one table. done() returns the first error; until then every read returns some
// value, so that a format reads as a plain list of its keys.
class Fields {
 public:
  // `where` names the file, and the position in it if the table is not the whole file. The table
  // must outlive the fields.
  Fields(const Json& table, std::string where);

  // Null if the key is missing or invalid. A missing key is an error for required() only.
  const Json* required(const std::string& key, const Form& form);
  const Json* optional(const std::string& key, const Form& form);

  template <class T>
  T get(const std::string& key, const Form& form) {
    const Json* value = required(key, form);
    return value == nullptr ? T{} : value->get<T>();
  }
  template <class T>
  T get(const std::string& key, const Form& form, T fallback) {
    const Json* value = optional(key, form);
    return value == nullptr ? fallback : value->get<T>();
  }

  const std::string& where() const { return where_; }
  void complain(const std::string& key, const std::string& what);
  // Takes over the error of a nested table, if there is one.
  void merge(const Result<void>& part);
  // A key that was never read is an error too, and comes first: it may explain a missing one.
  Result<void> done() const;

 private:
  const Json& table_;
  std::string where_;
  std::vector<std::string> known_;
  std::optional<Error> first_;
};

}  // namespace sluice
