#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "partition/chunk_map.h"
#include "torch/device_codec.h"

namespace sluice {

// Which chunks of a step are to be packed or unpacked on the device, and the copies of their codes.
// On the host a code lies at the beginning of its gradient's memory. Everything is queued on the
// current stream.
class DevicePacking {
 public:
  // Gradients of the whole model, on the device.
  DevicePacking(Codec codec, const ChunkMap& chunks, at::Tensor gradients);

  // The gradient of this layer is final. True if the codes that are to be sent are worth a batch.
  bool add(LayerId layer);
  // Packs the chunks whose gradients are final, and copies them into the host's gradients.
  void send(const at::Tensor& host);
  // Unpacks the sums of these layers, up to `end`, from the host's gradients, except those that
  // came with other layers of this step. Returns their range.
  Range bring(std::size_t first, std::size_t end, const at::Tensor& host);
  void end_step();

 private:
  at::Tensor code_on(const at::Tensor& host, std::size_t chunk) const;

  DeviceCodec codec_;
  at::Tensor gradients_;
  std::vector<std::vector<std::size_t>> chunks_of_;  // by layer
  std::vector<std::uint32_t> layers_;                // by chunk: how many it belongs to
  std::vector<std::uint32_t> missing_;               // by chunk: gradients that are not final
  std::vector<bool> brought_;                        // by chunk
  std::vector<std::size_t> final_;                   // chunks to be sent
  std::int64_t values_ = 0;                          // in them
};

}  // namespace sluice
