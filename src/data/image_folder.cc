#include "data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "base/file.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout =
    "--data-dir must name a folder with train/CLASS/IMAGE and val/CLASS/IMAGE (or test/...)";

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

Error unreadable(const fs::path& path, const std::error_code& reason) {
  return Error(fmt::format("{}: cannot be read: {}; {}", path.string(), reason.message(), kLayout));
}

// The wanted entries of a folder, sorted by name.
template <class Iterator, class Wanted>
Result<std::vector<fs::path>> list(const fs::path& folder, Wanted wanted) {
  std::vector<fs::path> found;
  std::error_code failed;
  Iterator entry(folder, fs::directory_options::follow_directory_symlink, failed);
  for (const Iterator end; !failed && entry != end; entry.increment(failed)) {
    if (wanted(*entry)) {
      found.push_back(entry->path());
    }
  }
  if (failed) {
    return unreadable(folder, failed);
  }
  std::ranges::sort(found);
  return found;
}

Result<std::vector<fs::path>> classes_in(const fs::path& folder) {
  return list<fs::directory_iterator>(folder, [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored);
  });
}

Result<std::vector<fs::path>> images_in(const fs::path& folder) {
  auto images =
      list<fs::recursive_directory_iterator>(folder, [](const fs::directory_entry& entry) {
        std::error_code ignored;
        return entry.is_regular_file(ignored) && is_image(entry.path());
      });
  if (images && images->empty()) {
    return Error(fmt::format("{}: expected images (.jpg, .jpeg, .png), found none; {}",
                             folder.string(), kLayout));
  }
  return images;
}

using Labels = std::map<std::string, std::int64_t>;  // by class name

Result<Labels> labels_in(const fs::path& folder) {
  const auto classes = classes_in(folder);
  if (!classes) {
    return classes.error();
  }
  if (classes->empty()) {
    return Error(fmt::format("{}: expected a folder for each class, found none; {}",
                             folder.string(), kLayout));
  }
  Labels labels;
  for (const fs::path& path : *classes) {
    labels.emplace(path.filename().string(), static_cast<std::int64_t>(labels.size()));
  }
  return labels;
}

Result<void> add_images(const fs::path& folder, const Labels& labels, ImageSet& set) {
  const auto classes = classes_in(folder);
  if (!classes) {
    return classes.error();
  }
  for (const fs::path& path : *classes) {
    const auto label = labels.find(path.filename().string());
    if (label == labels.end()) {
      return Error(fmt::format("{}: expected one of the {} classes of train, found another; {}",
                               path.string(), labels.size(), kLayout));
    }
    const auto images = images_in(path);
    if (!images) {
      return images.error();
    }
    for (const fs::path& image : *images) {
      set.paths.push_back(image.string());
      set.labels.push_back(label->second);
    }
  }
  return {};
}

fs::path held_out_in(const fs::path& folder) {
  std::error_code ignored;
  const fs::path test = folder / "test";
  return fs::is_directory(folder / "val", ignored) || !fs::is_directory(test, ignored)
             ? folder / "val"
             : test;
}

Image read_image(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) {
    throw DataError(bytes.error().message());
  }
  auto image = decode_image(*bytes);
  if (!image) {
    throw DataError(image.error().within(path).message());
  }
  return *std::move(image);
}

}  // namespace

SampleForm ImageSet::form() const {
  return {{static_cast<std::int64_t>(raster.channels), static_cast<std::int64_t>(raster.rows),
           static_cast<std::int64_t>(raster.columns)},
          classes};
}

Preparation ImageSet::preparation() const {
  Preparation preparation = standardisation_of(raster);
  preparation.classes = class_names;
  return preparation;
}

void ImageSet::load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                    Batch& batch) const {
  batch.shape = form().shape;
  batch.shape.insert(batch.shape.begin(), static_cast<std::int64_t>(indices.size()));
  batch.features.clear();
  batch.features.reserve(indices.size() * raster.size());
  batch.words.clear();
  batch.labels.clear();
  for (const std::int64_t index : indices) {
    const Image image = read_image(paths[static_cast<std::size_t>(index)]);
    Random random(augmentation_seed, static_cast<std::uint64_t>(index));
    const View view = varied ? random_view(image, raster, random) : centre_view(image, raster);
    append_view(image, view, raster, batch.features);
    batch.labels.push_back(labels[static_cast<std::size_t>(index)]);
  }
}

Result<ImageSplit> find_images(const ImageFolderSpec& spec) {
  if (const std::string advice = image_support().advice; !advice.empty()) {
    return Error(advice);
  }
  const fs::path folder(spec.folder);
  const auto labels = labels_in(folder / "train");
  if (!labels) {
    return labels.error();
  }
  ImageSet common;
  common.raster = spec.raster;
  common.classes = static_cast<std::int64_t>(labels->size());
  for (const auto& [name, label] : *labels) {
    common.class_names.push_back(name);
  }
  ImageSplit split{common, common};
  split.train.varied = spec.varied;
  if (auto added = add_images(folder / "train", *labels, split.train); !added) {
    return added.error();
  }
  if (auto added = add_images(held_out_in(folder), *labels, split.test); !added) {
    return added.error();
  }
  return split;
}

}  // namespace sluice
