#include "data/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "base/file.h"
#include "base/text.h"

namespace sluice {
namespace {

constexpr std::size_t kBucketWidth = 10;
constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::array kHeldOut{"val", "valid", "dev", "test", "tst2012", "tst2013"};

using Line = std::vector<std::string_view>;  // words

// A file and the words of its lines, which are views of its bytes.
struct Text {
  std::string path;
  std::unique_ptr<const std::string> bytes;
  std::vector<Line> lines;
};

Line words_of(std::string_view line) {
  Line words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) {
      return words;
    }
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

Result<Text> read_text(const std::filesystem::path& path) {
  auto bytes = read_file(path);
  if (!bytes) {
    return Error(bytes.error().message() +
                 "; --data-dir must name a folder with train.SOURCE and train.TARGET, where "
                 "--source and --target are the endings of the two languages");
  }
  Text text{path.string(), std::make_unique<const std::string>(*std::move(bytes)), {}};
  const std::string_view all = *text.bytes;
  if (const std::size_t good = utf8_length(all); good != all.size()) {
    return Error(
        fmt::format("{}: offset {}: expected text in UTF-8, found the byte {:02x}; the file is "
                    "corrupt or has another encoding: fetch it again or convert it",
                    text.path, good, static_cast<std::uint8_t>(all[good])));
  }
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    text.lines.push_back(words_of(all.substr(begin, end - begin)));
    begin = end + 1;
  }
  return text;
}

struct TextPair {
  Text source;
  Text target;
};

Result<TextPair> read_pair(const CorpusSpec& spec, const std::string& name) {
  const std::filesystem::path folder(spec.folder);
  auto source = read_text(folder / (name + "." + spec.source));
  if (!source) {
    return source.error();
  }
  auto target = read_text(folder / (name + "." + spec.target));
  if (!target) {
    return target.error();
  }
  TextPair pair{*std::move(source), *std::move(target)};
  const bool source_short = pair.source.lines.size() < pair.target.lines.size();
  const Text& shorter = source_short ? pair.source : pair.target;
  const Text& longer = source_short ? pair.target : pair.source;
  if (shorter.lines.size() != longer.lines.size()) {
    return Error(fmt::format(
        "{}: offset {}: expected as many lines as in {}, which has {}, found {}; one of the files "
        "is corrupt: fetch both again",
        shorter.path, shorter.bytes->size(), longer.path, longer.lines.size(),
        shorter.lines.size()));
  }
  return pair;
}

class Vocabulary {
 public:
  // Keeps the most frequent words; ties go in alphabetical order.
  Vocabulary(const std::vector<Line>& lines, std::int64_t max) {
    std::unordered_map<std::string_view, std::int64_t> counts;
    for (const Line& line : lines) {
      for (const std::string_view word : line) {
        ++counts[word];
      }
    }
    std::vector<std::pair<std::int64_t, std::string_view>> ranking;
    for (const auto& [word, count] : counts) {
      ranking.emplace_back(-count, word);
    }
    std::ranges::sort(ranking);
    ranking.resize(std::min(ranking.size(), static_cast<std::size_t>(max)));
    for (const auto& [count, word] : ranking) {
      numbers_.emplace(word, static_cast<std::int32_t>(words_.size()));
      words_.emplace_back(word);
    }
  }

  // By number: marks for the special numbers, then the words.
  const std::vector<std::string>& words() const { return words_; }
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }

  Sentence translate(const Line& line) const {
    Sentence sentence;
    for (const std::string_view word : line) {
      const auto found = numbers_.find(word);
      sentence.push_back(found == numbers_.end() ? static_cast<std::int32_t>(kUnknown)
                                                 : found->second);
    }
    return sentence;
  }

 private:
  std::vector<std::string> words_{"<padding>", "<begin>", "<end>", "<unknown>"};
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

// Words of the longer sentence, and its end mark.
std::size_t width_of(const Line& source, const Line& target) {
  return std::max(source.size(), target.size()) + 1;
}

// The numbers of the lines that can be used, short ones first.
std::vector<std::size_t> usable_lines(const TextPair& pair, std::int64_t longest) {
  const auto width = [&](std::size_t i) {
    return width_of(pair.source.lines[i], pair.target.lines[i]);
  };
  std::vector<std::size_t> lines(pair.source.lines.size());
  std::iota(lines.begin(), lines.end(), std::size_t{0});
  std::erase_if(lines, [&](std::size_t i) {
    return pair.source.lines[i].empty() || pair.target.lines[i].empty() ||
           width(i) > static_cast<std::size_t>(longest);
  });
  std::ranges::stable_sort(lines, {}, width);
  return lines;
}

Result<TextSet> make_set(const TextPair& pair, const CorpusSpec& spec, const Vocabulary& source,
                         const Vocabulary& target) {
  TextSet set;
  set.longest = spec.longest;
  set.source_words = source.size();
  set.target_words = target.size();
  set.prepared.source_words = source.words();
  set.prepared.target_words = target.words();
  const std::vector<std::size_t> lines = usable_lines(pair, spec.longest);
  if (lines.empty()) {
    return Error(fmt::format(
        "{}: expected sentences of 1 ... {} words with translations in {}, found none; raise "
        "--input-size if they are longer",
        pair.source.path, spec.longest - 1, pair.target.path));
  }
  std::size_t bucket = 0;
  for (const std::size_t i : lines) {
    const Line& from = pair.source.lines[i];
    const Line& to = pair.target.lines[i];
    const std::size_t tens = width_of(from, to) / kBucketWidth;
    if (tens != bucket && !set.source.empty()) {
      set.ends.push_back(set.size());
    }
    bucket = tens;
    set.source.push_back(source.translate(from));
    set.target.push_back(target.translate(to));
  }
  set.ends.push_back(set.size());
  return set;
}

Result<std::string> held_out_name(const CorpusSpec& spec) {
  for (const char* name : kHeldOut) {
    std::error_code ignored;
    const auto path = std::filesystem::path(spec.folder) / (std::string(name) + "." + spec.source);
    if (std::filesystem::exists(path, ignored)) {
      return std::string(name);
    }
  }
  return Error(fmt::format("{}: expected a test set, found none of {} with the ending .{}",
                           spec.folder, fmt::join(kHeldOut, ", "), spec.source));
}

}  // namespace

Result<Corpus> read_corpus(const CorpusSpec& spec) {
  const auto train = read_pair(spec, "train");
  if (!train) {
    return train.error();
  }
  const auto name = held_out_name(spec);
  if (!name) {
    return name.error();
  }
  const auto test = read_pair(spec, *name);
  if (!test) {
    return test.error();
  }
  const Vocabulary source(train->source.lines, spec.vocabulary);
  const Vocabulary target(train->target.lines, spec.vocabulary);
  auto train_set = make_set(*train, spec, source, target);
  if (!train_set) {
    return train_set.error();
  }
  auto test_set = make_set(*test, spec, source, target);
  if (!test_set) {
    return test_set.error();
  }
  const auto pairs =
      static_cast<std::int64_t>(train->source.lines.size() + test->source.lines.size());
  const std::int64_t used = train_set->size() + test_set->size();
  return Corpus{*std::move(train_set), *std::move(test_set), pairs - used};
}

}  // namespace sluice
