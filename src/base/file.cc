#include "base/file.h"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

Error file_error(const std::filesystem::path& path, const std::string& what, int code) {
  return Error(path.string() + ": " + what + ": " + std::generic_category().message(code));
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return file_error(path, "cannot be read", EISDIR);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return file_error(path, "cannot be read", errno);
  }
  return std::move(text).str();
}

Result<void> write_file(const std::filesystem::path& path,
                        const std::function<void(std::ostream&)>& write) {
  auto unfinished = path;
  unfinished += ".tmp";
  errno = 0;
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  if (file) {
    write(file);
    file.close();
  }
  if (!file) {
    const int code = errno;
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    return file_error(path, "cannot be written", code);
  }
  std::error_code failed;
  std::filesystem::rename(unfinished, path, failed);
  if (failed) {
    return file_error(path, "cannot be written", failed.value());
  }
  return {};
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  return write_file(path, [&](std::ostream& out) { out << text; });
}

}  // namespace sluice
