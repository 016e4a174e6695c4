#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "base/result.h"

namespace sluice {

Result<std::string> read_file(const std::filesystem::path& path);

// Writes a whole file under a name of its own and then puts it in place, so that a reader sees the
// old file or the new one, never half of it, even after a power failure. What is no plain file,
// such as a pipe, is written to as it is.
Result<void> write_file(const std::filesystem::path& path,
                        const std::function<void(std::ostream&)>& write);
Result<void> write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace sluice
