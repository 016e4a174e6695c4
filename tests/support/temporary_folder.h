#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice {

// A new folder for each test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(::testing::TempDir()) {}
  explicit TemporaryFolder(const std::string& parent) {
    std::string name = parent + "sluice-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_;
};

// Where syncing a file takes no time, if there is such a place.
inline const std::string kInMemory =
    access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : ::testing::TempDir();

}  // namespace sluice
