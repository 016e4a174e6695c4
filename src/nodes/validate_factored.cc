#include "nodes/validate_factored.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice {

Result<void> validate_factored(const Strategy& strategy) {
  if (!strategy.factored()) {
    return strategy.power_rank == kPowerRank
               ? Result<void>()
               : Error(fmt::format("power-rank is about codec powersgd, and this is codec {}; take "
                                   "codec powersgd, or leave it out",
                                   traits_of(strategy.codec).name));
  }
  if (strategy.algorithm != Algorithm::kBsp) {
    return Error(fmt::format(
        "codec powersgd does not go with algorithm {}: what its factors lose goes into the "
        "gradients of the next iteration, which all workers sum; take algorithm bsp, or another "
        "codec",
        traits_of(strategy.algorithm).name));
  }
  if (strategy.exchange != Exchange::kAllReduce) {
    return Error(fmt::format(
        "codec powersgd does not go with exchange {}: workers sum a left factor, and find their "
        "right one with that sum; take exchange allreduce, or another codec",
        name_of(kExchangeNames, strategy.exchange)));
  }
  if (strategy.partition != Partition::kLayer) {
    return Error(fmt::format(
        "codec powersgd does not go with partition {}: its factors are those of the matrix of a "
        "layer; take partition layer (they are still summed in segments), or another codec",
        name_of(kPartitionNames, strategy.partition)));
  }
  if (strategy.driver_sums()) {
    return Error(fmt::format(
        "codec powersgd does not go with collective {}: that sums whole gradients, and a matrix "
        "travels as two factors; take collective auto, or another codec",
        name_of(kCollectiveNames, *strategy.collective)));
  }
  if (!strategy.error_feedback) {
    return Error(
        "codec powersgd sends so little that training does not bear the loss of the rest; turn "
        "error feedback on");
  }
  return {};
}

Result<void> check_matrices(const Strategy& strategy, std::span<const Layer> layers) {
  const auto has_matrix = [](const Layer& layer) { return layer.matrix.rows > 0; };
  if (!strategy.factored() || std::ranges::any_of(layers, has_matrix)) {
    return {};
  }
  return Error(
      "codec powersgd sends factors of matrices, and no layer of this profile has rows and "
      "columns; make the profile anew with sluice profile, or take another codec");
}

}  // namespace sluice
