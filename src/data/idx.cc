#include "data/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>

namespace sluice {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::int64_t kMaxValues = std::int64_t{1} << 40U;
constexpr std::size_t kBlock = std::size_t{1} << 24U;
constexpr const char* kFetchAgain =
    "the file is corrupt: fetch it again (Debian: apt-get install --reinstall "
    "dataset-fashion-mnist)";
constexpr const char* kHowToGet =
    "install Fashion-MNIST with apt-get install dataset-fashion-mnist, or name a folder with the "
    "four files of MNIST or a similar data set";

// Reads a file from start to end; zlib unpacks it if it is compressed.
class IdxFile {
 public:
  explicit IdxFile(std::string path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {}

  bool is_open() const { return file_ != nullptr; }

  Result<void> read(std::span<std::uint8_t> into, std::string_view what) {
    const std::int64_t begin = offset_;
    const int got = gzread(file_.get(), into.data(), static_cast<unsigned>(into.size()));
    offset_ += std::max(got, 0);
    if (got == static_cast<int>(into.size())) {
      return {};
    }
    return corrupt(begin, fmt::format("expected {} bytes of {}, found {}{}", into.size(), what,
                                      std::max(got, 0), unpacking_error()));
  }

  // Reads to the very end, where gzip keeps its checksum.
  Result<void> expect_end() {
    std::uint8_t byte = 0;
    const int got = gzread(file_.get(), &byte, 1);
    const std::string reason = unpacking_error();
    if (got == 0 && reason.empty()) {
      return {};
    }
    return corrupt(offset_, "expected the end of the file, found " +
                                (got == 1 ? std::string("more bytes") : "corrupt data" + reason));
  }

  Error corrupt(std::int64_t offset, const std::string& what) const {
    return Error(fmt::format("{}: offset {}: {}; {}", path_, offset, what, kFetchAgain));
  }

  std::int64_t offset() const { return offset_; }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  // Removes the path that zlib puts before its reason.
  std::string unpacking_error() const {
    int code = Z_OK;
    const std::string_view message = gzerror(file_.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) {
      return "";
    }
    return fmt::format(" ({})", message.substr(std::min(path_.size() + 2, message.size())));
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::int64_t offset_ = 0;
};

Result<std::vector<std::int64_t>> read_shape(IdxFile& file, std::size_t dimensions) {
  std::array<std::uint8_t, 4> word{};
  if (auto read = file.read(word, "header"); !read) {
    return read.error();
  }
  if (word !=
      std::array<std::uint8_t, 4>{0, 0, kUnsignedByte, static_cast<std::uint8_t>(dimensions)}) {
    return file.corrupt(0, fmt::format("expected the header 00 00 {:02x} {:02x} of an IDX file, "
                                       "found {:02x}",
                                       kUnsignedByte, dimensions, fmt::join(word, " ")));
  }
  std::vector<std::int64_t> shape;
  std::int64_t values = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::int64_t begin = file.offset();
    if (auto read = file.read(word, "a dimension"); !read) {
      return read.error();
    }
    std::int64_t size = 0;
    for (const std::uint8_t byte : word) {
      size = size * 256 + byte;
    }
    if (size == 0 || size > kMaxValues / values) {
      return file.corrupt(begin, fmt::format("expected a dimension of 1 ... {}, found {}",
                                             kMaxValues / values, size));
    }
    values *= size;
    shape.push_back(size);
  }
  return shape;
}

Result<std::string> find_file(const std::string& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / (name + suffix);
    if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
      return path.string();
    }
  }
  return Error(fmt::format("{}: expected {} or {}.gz in this folder, found neither; {}", folder,
                           name, name, kHowToGet));
}

Result<IdxArray> read_part(const std::string& folder, const std::string& name,
                           std::size_t dimensions) {
  auto path = find_file(folder, name);
  if (!path) {
    return path.error();
  }
  return read_idx(*path, dimensions);
}

Result<DataSet> read_set(const std::string& folder, const std::string& prefix) {
  const std::string image_file = prefix + "-images-idx3-ubyte";
  const std::string label_file = prefix + "-labels-idx1-ubyte";
  auto images = read_part(folder, image_file, 3);
  if (!images) {
    return images.error();
  }
  auto labels = read_part(folder, label_file, 1);
  if (!labels) {
    return labels.error();
  }
  if (images->shape[0] != labels->shape[0]) {
    return Error(
        fmt::format("{}: expected as many labels as images, found {} in {} and {} in {}; {}",
                    folder, labels->shape[0], label_file, images->shape[0], image_file, kHowToGet));
  }
  DataSet set;
  set.sample_shape = {1, images->shape[1], images->shape[2]};
  set.features.assign(images->values.begin(), images->values.end());
  set.labels.assign(labels->values.begin(), labels->values.end());
  set.classes = *std::max_element(set.labels.begin(), set.labels.end()) + 1;
  return set;
}

}  // namespace

Result<IdxArray> read_idx(const std::string& path, std::size_t dimensions) {
  IdxFile file(path);
  if (!file.is_open()) {
    return Error(fmt::format("{}: cannot be read; {}", path, kHowToGet));
  }
  auto shape = read_shape(file, dimensions);
  if (!shape) {
    return shape.error();
  }
  IdxArray array{*std::move(shape), {}};
  std::size_t left = 1;
  for (const std::int64_t size : array.shape) {
    left *= static_cast<std::size_t>(size);
  }
  // Memory grows with what the file really holds, not with what its header claims.
  while (left > 0) {
    const std::size_t begin = array.values.size();
    const std::size_t block = std::min(left, kBlock);
    array.values.resize(begin + block);
    if (auto read = file.read(std::span(array.values).subspan(begin), "elements"); !read) {
      return read.error();
    }
    left -= block;
  }
  if (auto end = file.expect_end(); !end) {
    return end.error();
  }
  return array;
}

Result<DataSplit> read_idx_folder(const std::string& folder) {
  auto train = read_set(folder, "train");
  if (!train) {
    return train.error();
  }
  auto test = read_set(folder, "t10k");
  if (!test) {
    return test.error();
  }
  if (test->sample_shape != train->sample_shape || test->classes > train->classes) {
    return Error(fmt::format(
        "{}: expected test images like the training images ({} in {} classes), found {} in {}; {}",
        folder, fmt::join(train->sample_shape, "x"), train->classes,
        fmt::join(test->sample_shape, "x"), test->classes, kHowToGet));
  }
  DataSplit split{*std::move(train), *std::move(test)};
  split.test.classes = split.train.classes;
  standardise(split);
  if (folder == kFashionMnistFolder) {
    for (DataSet* set : {&split.train, &split.test}) {
      set->prepared.classes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                               "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
    }
  }
  return split;
}

}  // namespace sluice
