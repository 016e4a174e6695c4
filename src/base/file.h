#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "base/result.h"

namespace sluice {

Result<std::string> read_file(const std::filesystem::path& path);

// Writes to a temporary file and renames it into place, so that a reader sees the old file or the
// new one, never half of one, even after a power failure. Anything but a regular file, such as a
// pipe, is written to directly.
Result<void> write_file(const std::filesystem::path& path,
                        const std::function<void(std::ostream&)>& write);
Result<void> write_file(const std::filesystem::path& path, const std::string& text);

// Whether someone else than this user and root may have written the file, being its owner.
bool belongs_to_another(const std::filesystem::path& path);

// A new name is durable only once its folder is on the disk: see to that.
Result<void> sync_folder_of(const std::filesystem::path& path);

}  // namespace sluice
