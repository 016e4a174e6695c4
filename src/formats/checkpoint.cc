#include "formats/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/hash.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kPrefix = "iteration-";
constexpr std::string_view kUnfinished = ".partial";
constexpr std::int64_t kMaxIteration = INT64_MAX / 2;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<std::uint64_t> from_hex(const std::string& text) {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, fault] = std::from_chars(text.data(), last, number, 16);
  return fault == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

// Of all but the checksum itself. Keys are sorted, so equal values give equal texts.
std::string checksum_of(Json manifest) {
  manifest.erase("checksum");
  return hex(hash_of(bytes_of(manifest.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.front() != '.';
}

Result<CheckpointFile> file_from(const Json& entry, const std::string& where) {
  Fields fields(entry, where);
  CheckpointFile file{.name = fields.get<std::string>("name", Form::text()), .digest = {}};
  file.digest.bytes =
      static_cast<std::uint64_t>(fields.get<std::int64_t>("bytes", Form::integer(0, INT64_MAX)));
  const auto checksum = from_hex(fields.get<std::string>("checksum", Form::text()));
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  if (!checksum || !is_plain_name(file.name)) {
    return Error(where + ": is no file with a checksum");
  }
  file.digest.checksum = *checksum;
  return file;
}

Result<std::vector<CheckpointFile>> files_from(const Json& list) {
  std::vector<CheckpointFile> files;
  for (const Json& entry : list) {
    auto file = file_from(entry, fmt::format("files[{}]", files.size()));
    if (!file) {
      return file.error();
    }
    files.push_back(*std::move(file));
  }
  return files;
}

std::optional<Iteration> iteration_in(const std::string& name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  Iteration iteration = 0;
  const char* const last = name.data() + name.size();
  const auto [end, fault] = std::from_chars(name.data() + kPrefix.size(), last, iteration);
  const bool is_one = fault == std::errc() && end == last && iteration >= 0 &&
                      name == fmt::format("{}{}", kPrefix, iteration);
  return is_one ? std::optional(iteration) : std::nullopt;
}

}  // namespace

std::string to_text(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const auto& [name, digest] : manifest.files) {
    files.push_back({{"name", name}, {"bytes", digest.bytes}, {"checksum", hex(digest.checksum)}});
  }
  Json json{{"format", kFormat},
            {"iteration", manifest.iteration},
            {"version", manifest.version},
            {"settings", manifest.settings},
            {"measured", manifest.measured},
            {"files", files}};
  json["checksum"] = checksum_of(json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CheckpointManifest> manifest_from(const std::string& text) {
  const auto json = parse_json(text, kManifest);
  if (!json) {
    return json.error();
  }
  Fields fields(*json, kManifest);
  const auto format = fields.get<std::int64_t>("format", Form::integer(1, INT64_MAX));
  const auto checksum = fields.get<std::string>("checksum", Form::text());
  CheckpointManifest manifest;
  manifest.iteration = fields.get<std::int64_t>("iteration", Form::integer(0, kMaxIteration));
  manifest.version = fields.get<std::string>("version", Form::text());
  const Json* settings = fields.required("settings", Form::table());
  manifest.measured = fields.get<Json>("measured", Form::table());
  const Json* list = fields.required("files", Form::list());
  if (format > 0 && format != kFormat) {
    return Error(fmt::format("{}: has format {}, and this program reads format {}", kManifest,
                             format, kFormat));
  }
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  if (checksum != checksum_of(*json)) {
    return Error(fmt::format("{}: is not what was written", kManifest));
  }
  for (const auto& [key, value] : settings->items()) {
    if (!value.is_string()) {
      return Error(fmt::format("{}: settings: {} is no text", kManifest, key));
    }
    manifest.settings[key] = value.get<std::string>();
  }
  auto files = files_from(*list);
  if (!files) {
    return files.error().within(kManifest);
  }
  manifest.files = *std::move(files);
  return manifest;
}

std::string host_file_name(std::size_t host) { return fmt::format("host-{}.safetensors", host); }

Result<void> CheckpointFolder::create() const {
  std::error_code failed;
  fs::create_directories(path_, failed);
  return failed ? Result<void>(Error(fmt::format("{}: the folder cannot be created: {}",
                                                 path_.string(), failed.message())))
                : Result<void>();
}

std::vector<Iteration> CheckpointFolder::iterations() const {
  std::vector<Iteration> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_, none)) {
    if (const auto iteration = iteration_in(entry.path().filename().string())) {
      found.push_back(*iteration);
    }
  }
  std::ranges::sort(found, std::ranges::greater());
  return found;
}

fs::path CheckpointFolder::of(Iteration iteration) const {
  return path_ / fmt::format("{}{}", kPrefix, iteration);
}

fs::path CheckpointFolder::aside(Iteration iteration, const std::string& token) const {
  return path_ / fmt::format(".{}{}.{}{}", kPrefix, iteration, token, kUnfinished);
}

void CheckpointFolder::remove_unfinished() const {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(fmt::format(".{}", kPrefix)) && name.ends_with(kUnfinished)) {
      fs::remove_all(entry.path(), none);
    }
  }
}

Result<void> CheckpointFolder::publish(const CheckpointManifest& manifest,
                                       const std::string& token) const {
  const fs::path written = aside(manifest.iteration, token);
  std::error_code failed;
  for (const CheckpointFile& file : manifest.files) {
    fs::remove(written / (file.name + ".digest"), failed);
  }
  if (auto done = write_file(written / kManifest, to_text(manifest)); !done) {
    return done;
  }
  const fs::path named = of(manifest.iteration);
  fs::remove_all(named, failed);
  fs::rename(written, named, failed);
  if (failed) {
    return Error(fmt::format("{}: cannot get its name: {}", named.string(), failed.message()));
  }
  return sync_folder_of(named);
}

void CheckpointFolder::keep(std::size_t count) const {
  const std::vector<Iteration> all = iterations();
  std::error_code none;
  for (std::size_t i = count; i < all.size(); ++i) {
    fs::remove_all(of(all[i]), none);
  }
}

std::vector<fs::path> checkpoints_in(const fs::path& where) {
  std::error_code none;
  if (fs::exists(where / kManifest, none)) {
    return {where};
  }
  const CheckpointFolder folder(where);
  std::vector<fs::path> found;
  for (const Iteration iteration : folder.iterations()) {
    found.push_back(folder.of(iteration));
  }
  return found;
}

Result<CheckpointManifest> read_manifest(const fs::path& checkpoint) {
  const auto text = read_file(checkpoint / kManifest);
  if (!text) {
    return text.error();
  }
  auto manifest = manifest_from(*text);
  return manifest ? std::move(manifest) : manifest.error().within(checkpoint.string());
}

Result<std::string> read_checked(const fs::path& checkpoint, const CheckpointFile& file) {
  const fs::path path = checkpoint / file.name;
  std::error_code failed;
  if (const auto size = fs::file_size(path, failed); !failed && size != file.digest.bytes) {
    return Error(fmt::format("{}: has {} bytes, and {} were written", path.string(), size,
                             file.digest.bytes));
  }
  auto text = read_file(path);
  if (text && FileDigest{text->size(), hash_of(bytes_of(*text))} != file.digest) {
    return Error(path.string() + ": is not what was written: its checksum differs");
  }
  return text;
}

// It need not survive: the manifest will have it.
Result<void> write_digest(const fs::path& file, const FileDigest& digest) {
  const fs::path path = file.string() + ".digest";
  const fs::path unfinished = path.string() + ".tmp";
  std::ofstream out(unfinished);
  out << digest.bytes << ' ' << hex(digest.checksum) << '\n';
  out.close();
  std::error_code failed;
  fs::rename(unfinished, path, failed);
  return out && !failed ? Result<void>() : Error(path.string() + ": cannot be written");
}

std::optional<FileDigest> read_digest(const fs::path& file) {
  const auto text = read_file(file.string() + ".digest");
  const std::size_t blank = text ? text->find(' ') : std::string::npos;
  if (blank == std::string::npos || !text->ends_with("\n")) {
    return std::nullopt;
  }
  FileDigest digest;
  std::from_chars(text->data(), text->data() + blank, digest.bytes);
  const auto checksum = from_hex(text->substr(blank + 1, text->size() - blank - 2));
  digest.checksum = checksum.value_or(0);
  return checksum ? std::optional(digest) : std::nullopt;
}

}  // namespace sluice
