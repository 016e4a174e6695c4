// Codes of a learner that packs: they lie in the memory of their gradients.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "codecs/sparse.h"
#include "state/workspace.h"

namespace sluice {

bool Workspace::is_learners(const Work& work) const {
  return learner_packs_ && (work.kind == WorkKind::kEncode || work.kind == WorkKind::kDecode);
}

Payload Workspace::pass_code(const Work& work) const {
  const std::span<std::byte> memory = std::as_writable_bytes(gradient(work, work.range));
  if (work.kind == WorkKind::kEncode) {
    check(work.output_bytes <= std::ssize(memory), "a code fits into the memory of its gradient");
    const auto code = memory.first(static_cast<std::size_t>(work.output_bytes));
    // A sum may be there, and take this memory, before all have got the code of a gradient.
    return sparse_ ? Payload::owning(std::vector<std::byte>(code.begin(), code.end()))
                   : Payload(code, nullptr);
  }
  const std::span<const std::byte> code = work.sources.front().bytes();
  check(code.size() <= memory.size(), "a code fits into the memory of its gradient");
  std::ranges::copy(code, memory.begin());
  return {};
}

void Workspace::do_together(std::span<const Work> works) const {
  learners_factors_.value().find_right(works, gradients_.at(works.front().slot));
}

void Workspace::pass_factors(const Work& work) const {
  if (work.kind == WorkKind::kRightFactor) {
    do_together({&work, 1});
  } else if (work.kind == WorkKind::kFromFactors) {
    learners_factors_.value().keep_right(work, gradient(work, work.range));
  }
}

void Workspace::leave_patch(const Work& work, std::span<const std::byte> patch) const {
  const std::span<std::byte> memory = std::as_writable_bytes(gradient(work, work.range));
  if (patch.size() <= memory.size()) {
    std::ranges::copy(patch, memory.begin());
  } else {
    store(memory.data(), 0, kAllChanged);
  }
}

}  // namespace sluice
