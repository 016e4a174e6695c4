#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "data/idx.h"

namespace sluice {

// Copies an IDX file up to the given number of entries of this length.
inline void copy_head(const std::filesystem::path& from, const std::filesystem::path& to,
                      std::size_t header, std::size_t entries, std::size_t length) {
  constexpr std::size_t kCountAt = 4;  // four bytes, big-endian
  std::string bytes(header + entries * length, '\0');
  const gzFile file = gzopen(from.c_str(), "rb");
  ASSERT_NE(file, nullptr) << from << ": is missing; scripts/packages installs it";
  EXPECT_EQ(gzread(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  gzclose(file);
  bytes[kCountAt] = bytes[kCountAt + 1] = '\0';
  bytes[kCountAt + 2] = static_cast<char>(entries >> 8U);
  bytes[kCountAt + 3] = static_cast<char>(entries & 0xffU);
  std::ofstream(to, std::ios::binary) << bytes;
}

// Writes the first images of Fashion-MNIST as a small data set, which is quick to read and
// evaluate.
inline void write_some_clothes(const std::filesystem::path& folder) {
  const std::filesystem::path all(kFashionMnistFolder);
  std::filesystem::create_directories(folder);
  for (const auto& [part, entries] : {std::pair{"train", 600}, std::pair{"t10k", 100}}) {
    const std::string images = std::string(part) + "-images-idx3-ubyte";
    const std::string labels = std::string(part) + "-labels-idx1-ubyte";
    copy_head(all / (images + ".gz"), folder / images, 16, entries, 28 * 28);
    copy_head(all / (labels + ".gz"), folder / labels, 8, entries, 1);
  }
}

}  // namespace sluice
