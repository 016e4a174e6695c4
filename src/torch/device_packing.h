#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/id.h"
#include "partition/chunk_map.h"
#include "torch/device_packer.h"
#include "torch/flat_parameters.h"

namespace sluice {

std::vector<Range> ranges_in(const ChunkMap& chunks);

// The packer of a strategy that packs. `parameters` are the host's.
std::unique_ptr<DevicePacker> packer_for(const Strategy& strategy, const DeepGradientSender& sender,
                                         const ChunkMap& chunks, const std::vector<Layer>& layers,
                                         const FlatParameters& flat, const at::Tensor& parameters);

// Which chunks of a step are to be packed, are on their way, or are to come back. On the host a
// code lies at the beginning of its gradient's memory. Everything is queued on the current stream.
class DevicePacking {
 public:
  // The packer has the ranges of the chunks.
  DevicePacking(std::unique_ptr<DevicePacker> packer, const ChunkMap& chunks,
                const std::vector<Layer>& layers);

  // The gradient of this layer is final. True if the codes that are to be sent are worth a batch.
  bool add(LayerId layer);
  // Packs the chunks whose gradients are final, on their way into this iteration, and copies their
  // codes into the host's gradients.
  void send(const at::Tensor& host, Iteration iteration);
  // The copies that were sent when this layer was new have arrived.
  void arrive(LayerId layer, const at::Tensor& host);
  // Whether is_finite() tells if a layer's gradient is finite, once it has arrived.
  bool finds_not_finite() const { return packer_->finds_not_finite(); }
  bool is_finite(LayerId layer) const { return packer_->is_finite(layers_[layer.index()].range); }
  // Takes back what came for these layers, up to `end`, from the host's gradients, except what came
  // with other layers of this step. Returns its range.
  Range bring(std::size_t first, std::size_t end, const at::Tensor& host);
  void end_step();
  // See DevicePacker.
  void find_right_factors(std::span<const Range> matrices, const at::Tensor& host) const {
    packer_->find_right_factors(matrices, host);
  }

  std::vector<at::Tensor> state() const { return packer_->state(); }

 private:
  struct OfLayer {
    Range range;
    std::vector<std::size_t> chunks = {};
    std::size_t sent_with = 0;  // the number of the call of send()
  };
  struct OfChunk {
    Range range;
    std::uint32_t layers = 0;   // how many it belongs to
    std::uint32_t missing = 0;  // of them: gradients that are not final
    bool brought = false;
  };

  std::unique_ptr<DevicePacker> packer_;
  std::vector<OfLayer> layers_;
  std::vector<OfChunk> chunks_;
  std::vector<LayerId> new_;        // their gradients have become final
  std::vector<std::size_t> final_;  // chunks to be sent
  std::int64_t values_ = 0;         // in them
  std::size_t sent_ = 0;            // calls of send()
  std::size_t arrived_ = 0;         // of them
};

}  // namespace sluice
