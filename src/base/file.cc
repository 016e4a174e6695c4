#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kReadableByAll = 0666;  // before the user's umask applies

Error file_error(const fs::path& path, const std::string& what, int code) {
  return Error(path.string() + ": " + what + ": " + std::generic_category().message(code));
}

// An open file descriptor, closed on destruction; negative if the file could not be opened.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// Returns errno, or 0 on success.
int error_if(bool failed) { return failed ? errno : 0; }

// A pipe or a device cannot be replaced by renaming, only written to.
bool is_special(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// Returns an error code, or 0 on success.
int write_stream(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) {
    write(file);
    file.close();
  }
  return file ? 0 : (errno != 0 ? errno : EIO);
}

// A temporary file beside `path`. Its name is unique, so two writers never share one.
struct Unfinished {
  fs::path path;
  Descriptor file;
};

Unfinished create_beside(const fs::path& path) {
  for (int number = 0;; ++number) {
    fs::path name = path;
    name += "." + std::to_string(number) + ".tmp";
    Descriptor file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kReadableByAll));
    if (file.is_open() || errno != EEXIST) {
      return {std::move(name), std::move(file)};
    }
  }
}

// Some file systems cannot sync a folder, and a folder without read permission cannot be opened for
// it; neither is an error.
int sync_names_beside(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int code = opened.is_open() ? error_if(fsync(opened.number()) != 0) : 0;
  return code == EINVAL ? 0 : code;
}

// Returns an error code, or 0 on success.
int replace_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  const Unfinished unfinished = create_beside(path);
  if (!unfinished.file.is_open()) {
    return errno;
  }
  int code = write_stream(unfinished.path, write);
  if (code == 0) {
    code = error_if(fsync(unfinished.file.number()) != 0);
  }
  if (code == 0) {
    code = error_if(rename(unfinished.path.c_str(), path.c_str()) != 0);
  }
  if (code != 0) {
    unlink(unfinished.path.c_str());
    return code;
  }
  return sync_names_beside(path);
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0) {
    return file_error(path, "cannot be read", errno);
  }
  // The size is only a hint: files in /proc report none, and a file may grow.
  constexpr std::size_t kMore = 1 << 16;
  std::string text(static_cast<std::size_t>(status.st_size) + 1, '\0');
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = read(file.number(), text.data() + length, text.size() - length);
    if (got == 0) {
      break;
    }
    if (got > 0) {
      length += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return file_error(path, "cannot be read", errno);
    }
    if (length == text.size()) {
      text.resize(2 * length + kMore);
    }
  }
  text.resize(length);
  return text;
}

Result<void> write_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  const int code = is_special(path) ? write_stream(path, write) : replace_file(path, write);
  return code == 0 ? Result<void>() : file_error(path, "cannot be written", code);
}

Result<void> write_file(const fs::path& path, const std::string& text) {
  return write_file(path, [&](std::ostream& out) { out << text; });
}

Result<void> sync_folder_of(const fs::path& path) {
  const int code = sync_names_beside(path);
  return code == 0 ? Result<void>() : file_error(path, "its folder cannot be synced", code);
}

bool belongs_to_another(const std::filesystem::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && status.st_uid != 0 && status.st_uid != geteuid();
}

}  // namespace sluice
