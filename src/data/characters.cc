#include "data/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"

namespace sluice {
namespace {

constexpr std::size_t kTestShare = 10;  // one in so many characters

Result<std::vector<std::filesystem::path>> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  std::filesystem::directory_iterator entries(folder, failure);
  for (; !failure && entries != std::filesystem::directory_iterator(); entries.increment(failure)) {
    if (entries->is_regular_file() && !entries->is_symlink()) {
      files.push_back(entries->path());
    }
  }
  if (failure) {
    return Error(fmt::format("{}: {}; --data-dir must name a folder with files of text", folder,
                             failure.message()));
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> text_of(const std::string& folder) {
  const auto files = files_of(folder);
  if (!files) {
    return files.error();
  }
  std::string text;
  for (const std::filesystem::path& path : *files) {
    const auto bytes = read_file(path);
    if (!bytes) {
      return bytes.error();
    }
    if (const std::size_t good = utf8_length(*bytes); good != bytes->size()) {
      return Error(fmt::format("{}: offset {}: expected text in UTF-8, found the byte {:02x}",
                               path.string(), good, static_cast<std::uint8_t>((*bytes)[good])));
    }
    text += *bytes;
  }
  return text;
}

}  // namespace

// The last window needs a character after it.
std::int64_t CharacterSet::size() const {
  const std::int64_t fitting = text.empty() ? 0 : (std::ssize(text) - 1) / length;
  return count > 0 ? std::min(count, fitting) : fitting;
}

void CharacterSet::load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                        Batch& batch) const {
  batch.shape = {std::ssize(indices), 1, length};
  batch.features.clear();
  batch.words.clear();
  batch.labels.clear();
  const auto window = static_cast<std::size_t>(length);
  for (const std::int64_t index : indices) {
    const auto number = static_cast<std::uint64_t>(index);
    const std::size_t begin =
        drawn ? Random(augmentation_seed, number).below(text.size() - window) : number * window;
    for (std::size_t i = begin; i < begin + window; ++i) {
      batch.words.push_back(static_cast<std::uint8_t>(text[i]));
      batch.labels.push_back(static_cast<std::uint8_t>(text[i + 1]));
    }
  }
}

Result<CharacterSplit> read_characters(const std::string& folder, std::int64_t length) {
  const auto text = text_of(folder);
  if (!text) {
    return text.error();
  }
  const std::size_t end = text->size() - text->size() / kTestShare;
  CharacterSplit split;
  split.train.length = split.test.length = length;
  split.train.text = text->substr(0, end);
  split.test.text = text->substr(end);
  if (split.test.size() == 0) {
    return Error(fmt::format(
        "{}: expected at least {} characters of text, so that the last tenth has a window of {} "
        "and a character after it, found {}; lower --input-size, or name another folder",
        folder, (length + 1) * static_cast<std::int64_t>(kTestShare), length, text->size()));
  }
  return split;
}

}  // namespace sluice
