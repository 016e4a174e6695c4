#include "data/cifar.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace sluice {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

// The file format of a data set. A record has one or more labels of one byte each, where only the
// last one counts, then the pixels, plane after plane.
struct Format {
  const char* name;
  std::vector<std::string> train;
  std::vector<std::string> test;
  std::int64_t classes;
  std::size_t labels;
  std::string class_names;  // name of a file, which may be missing
};

Format format_of(Cifar kind) {
  if (kind == Cifar::k100) {
    return {"CIFAR-100", {"train.bin"}, {"test.bin"}, 100, 2, "fine_label_names.txt"};
  }
  return {"CIFAR-10",
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
           "data_batch_5.bin"},
          {"test_batch.bin"},
          10,
          1,
          "batches.meta.txt"};
}

Result<void> append_records(const std::string& path, std::string_view bytes, const Format& format,
                            DataSet& set) {
  const auto corrupt = [&](std::size_t offset, const std::string& what) {
    return Error(
        fmt::format("{}: offset {}: {}; the file is corrupt: fetch the binary version of {} again",
                    path, offset, what, format.name));
  };
  const std::size_t record = format.labels + kPixels;
  if (bytes.empty()) {
    return corrupt(0, fmt::format("expected records of {} bytes, found nothing", record));
  }
  for (std::size_t begin = 0; begin < bytes.size(); begin += record) {
    if (const std::size_t left = bytes.size() - begin; left < record) {
      return corrupt(begin, fmt::format("expected a record of {} bytes, found {}", record, left));
    }
    const std::size_t label_at = begin + format.labels - 1;
    const auto label = static_cast<std::uint8_t>(bytes[label_at]);
    if (label >= format.classes) {
      return corrupt(label_at, fmt::format("expected a label of 0 ... {}, found {}",
                                           format.classes - 1, label));
    }
    set.labels.push_back(label);
    for (const char pixel : bytes.substr(label_at + 1, kPixels)) {
      set.features.push_back(static_cast<std::uint8_t>(pixel));
    }
  }
  return {};
}

Result<DataSet> read_set(const std::string& folder, const std::vector<std::string>& names,
                         const Format& format) {
  DataSet set;
  set.sample_shape = {3, 32, 32};
  set.classes = format.classes;
  for (const std::string& name : names) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    const auto bytes = read_file(path);
    if (!bytes) {
      return Error(fmt::format("{}; --data-dir must name a folder with the binary version of {}",
                               bytes.error().message(), format.name));
    }
    if (const auto read = append_records(path, *bytes, format, set); !read) {
      return read.error();
    }
  }
  return set;
}

// One name per line. Empty if the file is missing or the number of names is wrong.
std::vector<std::string> class_names_in(const std::string& folder, const Format& format) {
  const auto text = read_file((std::filesystem::path(folder) / format.class_names).string());
  std::vector<std::string> names;
  if (text) {
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      if (const auto end = line.find_last_not_of(" \r"); end != std::string::npos) {
        names.push_back(line.substr(0, end + 1));
      }
    }
  }
  return names.size() == static_cast<std::size_t>(format.classes) ? names
                                                                  : std::vector<std::string>();
}

}  // namespace

Result<DataSplit> read_cifar_folder(const std::string& folder, Cifar kind) {
  const Format format = format_of(kind);
  auto train = read_set(folder, format.train, format);
  if (!train) {
    return train.error();
  }
  auto test = read_set(folder, format.test, format);
  if (!test) {
    return test.error();
  }
  DataSplit split{*std::move(train), *std::move(test)};
  standardise(split);
  split.train.prepared.classes = class_names_in(folder, format);
  split.test.prepared.classes = split.train.prepared.classes;
  return split;
}

}  // namespace sluice
