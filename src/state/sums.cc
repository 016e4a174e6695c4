#include "state/sums.h"

#include <array>

namespace sluice {

void sum_into(std::span<float> total, std::span<const float> begun, const Sources& sources,
              std::size_t offset) {
  check(sources.size() > 0, "a sum needs a source");
  in_blocks(total.size(), [&](std::size_t begin, std::size_t end) {
    const std::span<float> block = total.subspan(begin, end - begin);
    if (begun.empty()) {
      sources.copy(0, offset + begin, block);
    } else {
      std::ranges::copy(begun.subspan(begin, block.size()), block.begin());
    }
    for (std::size_t s = begun.empty() ? 1 : 0; s < sources.size(); ++s) {
      sources.add_to(block, s, offset + begin);
    }
  });
}

void reduce_into(std::span<float> own, const Work& work, const Sources& sources,
                 std::size_t offset) {
  check(work.before <= sources.size(), "the gradients have their place among the sources");
  check(!work.fresh || (work.before == 0 && sources.size() > 0),
        "a fresh sum begins with its first source");
  in_blocks(own.size(), [&](std::size_t begin, std::size_t end) {
    const std::span<float> block = own.subspan(begin, end - begin);
    const std::size_t first = offset + begin;
    if (work.fresh) {
      sources.copy(0, first, block);
    }
    // Addition commutes: what comes before the gradients is summed on its own, then added to them.
    if (work.before > 0) {
      std::array<float, kBlockSize> room;
      const std::span<float> earlier(room.data(), block.size());
      sources.copy(0, first, earlier);
      for (std::size_t s = 1; s < work.before; ++s) {
        sources.add_to(earlier, s, first);
      }
      std::ranges::transform(block, earlier, block.begin(), std::plus<>());
    }
    for (std::size_t s = work.fresh ? 1 : work.before; s < sources.size(); ++s) {
      sources.add_to(block, s, first);
    }
  });
}

}  // namespace sluice
