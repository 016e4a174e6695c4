#include "exchange/participant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "exchange/aborted.h"
#include "exchange/gradient_exchange.h"
#include "model/names.h"

namespace sluice {
namespace {

void say(const std::string& text) { fmt::print(stderr, "sluice: {}\n", text); }

int fail(std::size_t rank, const std::exception& why) {
  if (const auto* aborted = dynamic_cast<const Aborted*>(&why)) {
    return aborted->code;
  }
  say(rank_on_host(rank) + ": " + why.what());
  return 1;
}

// A failure of the exchange ends all processes; calls that do not agree are the program's to
// report.
void end_all(ProcessGroup& group, const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const Disagreement&) {
    return;
  } catch (const std::exception& error) {
    if (group.size() > 1) {
      group.abort(fail(group.rank(), error));
    }
  }
}

std::string shown(const std::string& call) {
  constexpr std::size_t kShown = 300;
  return call.size() <= kShown ? call : call.substr(0, kShown) + " ...";
}

// One sentence; empty if all make the same call.
std::string disagreement_in(const std::vector<std::string>& calls) {
  for (std::size_t r = 1; r < calls.size(); ++r) {
    if (calls[r] != calls[0]) {
      return fmt::format(
          "rank {} calls {}, but rank 0 calls {}: all processes must make the same calls in the "
          "same order",
          r, shown(calls[r]), shown(calls[0]));
    }
  }
  return "";
}

constexpr std::array kNumberTypeNames{
    Names<NumberType>{NumberType::kFloat32, "float32"},
    Names<NumberType>{NumberType::kFloat64, "float64"},
    Names<NumberType>{NumberType::kInt8, "int8"},
    Names<NumberType>{NumberType::kUint8, "uint8"},
    Names<NumberType>{NumberType::kInt16, "int16"},
    Names<NumberType>{NumberType::kInt32, "int32"},
    Names<NumberType>{NumberType::kInt64, "int64"},
};
constexpr std::array kReductionNames{
    Names<Reduction>{Reduction::kSum, "sum"},
    Names<Reduction>{Reduction::kMin, "minimum"},
    Names<Reduction>{Reduction::kMax, "maximum"},
    Names<Reduction>{Reduction::kProduct, "product"},
};

}  // namespace

Participant::Participant(MpiLife life)
    : thread_(std::make_unique<ServiceThread>([life] { return join_processes(say, fail, life); },
                                              end_all)) {
  thread_->call([this](ProcessGroup& group) {
    const auto roster = check_in(group, {}, {});
    if (!roster) {
      throw std::runtime_error(roster.error().message());
    }
    rank_ = group.rank();
    size_ = group.size();
    per_machine_ = roster->per_machine;
    const auto& machines = roster->machines;
    local_size_ = static_cast<std::size_t>(std::ranges::count(machines, machines[rank_]));
    local_rank_ = static_cast<std::size_t>(std::count(
        machines.begin(), machines.begin() + static_cast<std::ptrdiff_t>(rank_), machines[rank_]));
  });
}

Participant::~Participant() = default;

void Participant::pause() {
  if (exchanging_ != nullptr) {
    exchanging_->pause();
  }
}

void Participant::together(const std::string& what, const ServiceThread::Task& work) {
  pause();
  if (size_ == 1) {
    return;
  }
  thread_->call([&](ProcessGroup& group) {
    const std::vector<std::string> calls = group.to_leader(what, "a call (" + shown(what) + ")");
    const std::string verdict =
        group.from_leader(disagreement_in(calls), "the agreement on " + shown(what));
    if (!verdict.empty()) {
      throw Disagreement(verdict);
    }
    work(group);
  });
}

void Participant::barrier() {
  together("barrier", [](ProcessGroup&) {});
}

void Participant::all_reduce(const Numbers& numbers, Reduction reduction) {
  together(fmt::format("allreduce ({}) of {} {}", name_of(kReductionNames, reduction),
                       numbers.count, name_of(kNumberTypeNames, numbers.type)),
           [&](ProcessGroup& group) { group.all_reduce(numbers, reduction); });
}

void Participant::broadcast(std::span<std::byte> bytes, std::size_t root) {
  together(fmt::format("broadcast of {} bytes from rank {}", bytes.size(), root),
           [&](ProcessGroup& group) { group.broadcast_from(root, bytes); });
}

std::string Participant::broadcast_text(const std::string& text, std::size_t root) {
  std::string result = text;
  together(fmt::format("broadcast of an object from rank {}", root), [&](ProcessGroup& group) {
    std::uint64_t length = text.size();
    group.broadcast_from(root, std::as_writable_bytes(std::span(&length, 1)));
    result.resize(length);
    group.broadcast_from(root, std::as_writable_bytes(std::span(result)));
  });
  return result;
}

std::vector<std::string> Participant::all_gather(const std::string& text) {
  std::vector<std::string> all{text};
  together("allgather", [&](ProcessGroup& group) { all = group.all_gather(text); });
  return all;
}

void Participant::leave() {
  together("shutdown", [](ProcessGroup&) {});
  thread_.reset();
}

void Participant::abort(int code) {
  if (size_ > 1) {
    const auto end = [code](ProcessGroup& group) { group.abort(code); };
    if (!thread_->try_post(end) && exchanging_ != nullptr) {
      exchanging_->fail(std::make_exception_ptr(Aborted(code)));
    }
    std::this_thread::sleep_for(
        std::chrono::seconds(2));  // if MPI does not hear, the launcher does
  }
  std::_Exit(code);
}

}  // namespace sluice
