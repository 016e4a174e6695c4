#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "data/dataset.h"

namespace sluice {

// Images for training, varied as usual for CIFAR: padded on all sides with the value 0, which is
// the mean of standardised pixels, cut to their size at a random place, and mirrored at random.
class PaddedCrops final : public Samples {
 public:
  explicit PaddedCrops(std::shared_ptr<const Samples> images, std::int64_t padding = 4)
      : images_(std::move(images)), padding_(padding) {}

  SampleForm form() const override { return images_->form(); }
  std::int64_t size() const override { return images_->size(); }
  std::vector<std::int64_t> bucket_ends() const override { return images_->bucket_ends(); }
  Preparation preparation() const override { return images_->preparation(); }
  void load(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
            Batch& batch) const override;

 private:
  std::shared_ptr<const Samples> images_;
  std::int64_t padding_;
};

}  // namespace sluice
