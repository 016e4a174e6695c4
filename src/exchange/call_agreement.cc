#include "exchange/call_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "exchange/aborted.h"

namespace sluice {
namespace {

constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

// All numbers, of which the processes find the smallest each. One that has joined says nothing of a
// call.
struct CallFields {
  std::int64_t hash = kNothing;
  std::int64_t minus_hash = kNothing;
  std::int64_t kind = kNothing;
  std::int64_t type = kNothing;
  std::int64_t reduction = kNothing;
  std::int64_t count = kNothing;
  std::int64_t root = kNothing;
  std::int64_t nobody_joined = kNothing;    // 0 of a process that has joined
  std::int64_t root_is_missing = kNothing;  // 0 of the root
};
constexpr std::size_t kFields = sizeof(CallFields) / sizeof(std::int64_t);

std::int64_t number(auto value) { return static_cast<std::int64_t>(value); }

CallFields fields_of(const CollectiveCall& call, std::size_t rank) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 62U) - 1;
  const auto hash = number(hash_of(std::as_bytes(std::span(call.text))) & kMask);
  return {.hash = hash,
          .minus_hash = -hash,
          .kind = number(call.kind),
          .type = number(call.type),
          .reduction = number(call.reduction),
          .count = number(call.count),
          .root = number(call.root),
          .nobody_joined = 1,
          .root_is_missing = rank == call.root ? 0 : 1};
}

CallFields fields_of_joined() { return {.nobody_joined = 0}; }

CallFields smallest(ProcessGroup& group, const CallFields& fields) {
  auto numbers = std::bit_cast<std::array<std::int64_t, kFields>>(fields);
  group.all_reduce({numbers.data(), numbers.size(), NumberType::kInt64}, Reduction::kMin);
  return std::bit_cast<CallFields>(numbers);
}

bool all_joined(const CallFields& all) { return all.hash == kNothing; }
bool differ(const CallFields& all) { return all.hash != -all.minus_hash; }

CollectiveCall call_in(const CallFields& all) {
  return {.kind = static_cast<CollectiveCall::Kind>(all.kind),
          .type = static_cast<NumberType>(all.type),
          .reduction = static_cast<Reduction>(all.reduction),
          .count = static_cast<std::size_t>(all.count),
          .root = static_cast<std::size_t>(all.root)};
}

bool works_with_joined(const CallFields& all) {
  const CollectiveCall call = call_in(all);
  switch (call.kind) {
    case CollectiveCall::Kind::kBarrier:
      return true;
    case CollectiveCall::Kind::kAllReduce:
      return call.reduction == Reduction::kSum;
    case CollectiveCall::Kind::kBroadcast:
      return all.root_is_missing == 0;
    case CollectiveCall::Kind::kOther:
      return false;
  }
  fail_check("there is no such call");
}

std::string shown(const std::string& call) {
  constexpr std::size_t kShown = 300;
  return call.size() <= kShown ? call : call.substr(0, kShown) + " ...";
}

// One sentence.
std::string disagreement_in(const std::vector<std::string>& calls) {
  const auto other =
      std::ranges::find_if(calls, [&](const auto& call) { return call != calls[0]; });
  check(other != calls.end(), "different calls have different texts");
  return fmt::format(
      "rank {} calls {}, but rank 0 calls {}: all processes must make the same calls in the same "
      "order",
      other - calls.begin(), shown(*other), shown(calls[0]));
}

std::size_t size_of(NumberType type) {
  switch (type) {
    case NumberType::kInt8:
    case NumberType::kUint8:
      return 1;
    case NumberType::kInt16:
      return 2;
    case NumberType::kFloat32:
    case NumberType::kInt32:
      return 4;
    case NumberType::kFloat64:
    case NumberType::kInt64:
      return 8;
  }
  fail_check("there is no such type");
}

void contribute_zeros(ProcessGroup& group, const CollectiveCall& call) {
  if (call.kind == CollectiveCall::Kind::kAllReduce) {
    std::vector<std::byte> zeros(call.count * size_of(call.type));
    group.all_reduce({zeros.data(), call.count, call.type}, call.reduction);
  } else if (call.kind == CollectiveCall::Kind::kBroadcast) {
    std::vector<std::byte> unused(call.count);
    group.broadcast_from(call.root, unused);
  }
}

}  // namespace

void agree(ProcessGroup& group, const CollectiveCall& call) {
  const CallFields all = smallest(group, fields_of(call, group.rank()));
  if (differ(all)) {
    throw Disagreement(disagreement_in(group.all_gather(call.text)));
  }
  if (all.nobody_joined == 0 && !works_with_joined(all)) {
    throw Disagreement(
        fmt::format("{} while some processes are in join(): only sums, barriers and broadcasts "
                    "from a process that has not joined can do without them",
                    shown(call.text)));
  }
}

void take_part_with_zeros(ProcessGroup& group) {
  for (;;) {
    const CallFields all = smallest(group, fields_of_joined());
    if (all_joined(all)) {
      return;
    }
    if (differ(all)) {
      group.all_gather("join");
    } else if (works_with_joined(all)) {
      contribute_zeros(group, call_in(all));
    }
  }
}

}  // namespace sluice
