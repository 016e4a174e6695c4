#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "data/images/view.h"

namespace sluice {

// Images that are read from their files each time they are needed.
struct ImageSet final : Samples {
  Raster raster;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;
  bool varied = false;  // a random view each time; else the centre
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;  // one per path

  SampleForm form() const override;
  Preparation preparation() const override;
  std::int64_t size() const override { return static_cast<std::int64_t>(paths.size()); }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;
};

struct ImageSplit {
  ImageSet train;
  ImageSet test;
};

struct ImageFolderSpec {
  std::string folder;
  Raster raster;
  bool varied = true;  // the training images
};

// Finds the images in FOLDER/train/CLASS/... and FOLDER/val/CLASS/... (or test instead of val) with
// the extensions .jpg, .jpeg and .png. Classes are numbered by name. Nothing is decoded yet.
Result<ImageSplit> find_images(const ImageFolderSpec& spec);

}  // namespace sluice
