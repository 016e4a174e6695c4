#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "formats/document.h"
#include "formats/safetensors.h"

namespace sluice {

// A checkpoint is a folder, iteration-N, with a safetensors file per host and a manifest. It is
// written aside, in a hidden folder, which gets its name when all is on the disk: a folder with
// that name is whole, unless someone or the disk has changed it since. The manifest says what must
// be in it.

struct CheckpointFile {
  std::string name;
  FileDigest digest;

  bool operator==(const CheckpointFile&) const = default;
};

struct CheckpointManifest {
  Iteration iteration = 0;  // the first that was not run
  std::string version;      // of the program that wrote it
  // That change the result of the run, by name.
  std::map<std::string, std::string> settings = {};
  Json measured = Json::object();  // at the start of the run, and to be used again
  std::vector<CheckpointFile> files = {};

  bool operator==(const CheckpointManifest&) const = default;
};

// As JSON, with a checksum of its own.
std::string to_text(const CheckpointManifest& manifest);
// The text may come from anyone.
Result<CheckpointManifest> manifest_from(const std::string& text);

// The file of a host.
std::string host_file_name(std::size_t host);

// The folder for the checkpoints of a run, which all hosts share.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  Result<void> create() const;
  // The iterations whose checkpoints have their names, the last first.
  std::vector<Iteration> iterations() const;
  std::filesystem::path of(Iteration iteration) const;
  // Where a run, which has this token, writes a checkpoint.
  std::filesystem::path aside(Iteration iteration, const std::string& token) const;
  // What runs have left behind that did not end.
  void remove_unfinished() const;

  // Adds the manifest to what was written aside and gives it its name. A checkpoint of that name
  // that is there already is replaced.
  Result<void> publish(const CheckpointManifest& manifest, const std::string& token) const;
  // Removes all but the last ones.
  void keep(std::size_t count) const;

 private:
  std::filesystem::path path_;
};

// The checkpoints of a folder, the last first; or that one, if it is a checkpoint itself.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& where);
// Reads and checks the manifest of a checkpoint.
Result<CheckpointManifest> read_manifest(const std::filesystem::path& checkpoint);
// The bytes of a file of the checkpoint, if they are those that were written.
Result<std::string> read_checked(const std::filesystem::path& checkpoint,
                                 const CheckpointFile& file);

// What a host has written: for the one who writes the manifest. Complete or absent.
Result<void> write_digest(const std::filesystem::path& file, const FileDigest& digest);
// None while it is absent.
std::optional<FileDigest> read_digest(const std::filesystem::path& file);

}  // namespace sluice
