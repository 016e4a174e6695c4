#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/source_reader.h"

// What the tests that read the sources and documents of Sluice have in common.
namespace sluice::tidy {

// Something that is as it is for a reason. One that is not needed any more fails.
struct Exception {
  std::string_view path;  // relative to the repository
  std::string_view what;  // the function or word
  std::string_view reason;
};

// What is found in a file, with what an exception would name.
struct Finding {
  std::string what;
  std::string text;
};

inline std::vector<std::string> texts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    texts.push_back(finding.text);
  }
  return texts;
}

// Holds what was found against the exceptions; tells those that nothing needs.
class Verdict {
 public:
  explicit Verdict(const std::vector<Exception>& exceptions)
      : exceptions_(exceptions), needed_(exceptions.size(), false) {}

  void add(const std::string& path, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const auto exception = std::ranges::find_if(exceptions_, [&](const Exception& e) {
        return e.path == path && e.what == finding.what;
      });
      if (exception == exceptions_.end()) {
        breaches_.push_back(path + ":" + finding.text);
      } else {
        needed_[static_cast<std::size_t>(exception - exceptions_.begin())] = true;
      }
    }
  }

  std::vector<std::string> breaches() const {
    std::vector<std::string> all = breaches_;
    for (std::size_t e = 0; e < exceptions_.size(); ++e) {
      if (!needed_[e]) {
        all.push_back(std::string(exceptions_[e].path) + ": needs no exception any more");
      }
    }
    return all;
  }

 private:
  const std::vector<Exception>& exceptions_;
  std::vector<bool> needed_;
  std::vector<std::string> breaches_;
};

// Of the folders with code.
inline std::vector<Source> all_code() {
  std::vector<Source> all;
  for (const std::string folder : {"src", "include", "tests", "bench", "examples"}) {
    for (Source& source : sources_under(kSourceRoot / folder)) {
      all.push_back({folder + "/" + source.path, std::move(source.text)});
    }
  }
  return all;
}

inline std::vector<Source> all_documents() {
  std::vector<Source> all{{"README.md", text_of(kSourceRoot / "README.md")}};
  for (const std::string folder : {"docs", "profiles", "examples"}) {
    for (Source& source : sources_under(kSourceRoot / folder, {".md"})) {
      all.push_back({folder + "/" + source.path, std::move(source.text)});
    }
  }
  return all;
}

}  // namespace sluice::tidy
