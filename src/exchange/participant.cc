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
#include "exchange/recording.h"
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
    : thread_(std::make_unique<ServiceThread>(
          [this, life] {
            // While this process has joined, it is right to wait for others.
            const auto warn = [this](const std::string& text) { joined_ ? void() : say(text); };
            return join_processes(warn, fail, life);
          },
          end_all)) {
  thread_->call([this](ProcessGroup& group) {
    const auto roster = check_in(group, {}, {});
    if (!roster) {
      throw std::runtime_error(roster.error().message());
    }
    rank_ = group.rank();
    size_ = group.size();
    per_machine_ = roster->per_machine;
    hosts_ = roster->hosts;
    const auto& machines = roster->machines;
    local_size_ = static_cast<std::size_t>(std::ranges::count(machines, machines[rank_]));
    local_rank_ = static_cast<std::size_t>(std::count(
        machines.begin(), machines.begin() + static_cast<std::ptrdiff_t>(rank_), machines[rank_]));
  });
}

Participant::~Participant() = default;

void Participant::together(const CollectiveCall& call, const ServiceThread::Task& work) {
  if (size_ > 1) {
    thread_->call([&](ProcessGroup& group) {
      agree(group, call);
      work(group);
    });
  }
}

void Participant::barrier() {
  together({.kind = CollectiveCall::Kind::kBarrier, .text = "barrier"}, [](ProcessGroup&) {});
}

void Participant::all_reduce(const Numbers& numbers, Reduction reduction) {
  together({.kind = CollectiveCall::Kind::kAllReduce,
            .text = fmt::format("allreduce ({}) of {} {}", name_of(kReductionNames, reduction),
                                numbers.count, name_of(kNumberTypeNames, numbers.type)),
            .type = numbers.type,
            .reduction = reduction,
            .count = numbers.count},
           [&](ProcessGroup& group) { group.all_reduce(numbers, reduction); });
}

void Participant::broadcast(std::span<std::byte> bytes, std::size_t root) {
  together({.kind = CollectiveCall::Kind::kBroadcast,
            .text = fmt::format("broadcast of {} bytes from rank {}", bytes.size(), root),
            .count = bytes.size(),
            .root = root},
           [&](ProcessGroup& group) { group.broadcast_from(root, bytes); });
}

std::string Participant::broadcast_text(const std::string& text, std::size_t root) {
  std::string result = text;
  together({.text = fmt::format("broadcast of an object from rank {}", root)},
           [&](ProcessGroup& group) {
             std::uint64_t length = text.size();
             group.broadcast_from(root, std::as_writable_bytes(std::span(&length, 1)));
             result.resize(length);
             group.broadcast_from(root, std::as_writable_bytes(std::span(result)));
           });
  return result;
}

std::vector<std::string> Participant::all_gather(const std::string& text) {
  std::vector<std::string> all{text};
  together({.text = "allgather"}, [&](ProcessGroup& group) { all = group.all_gather(text); });
  return all;
}

void Participant::join() {
  if (size_ > 1) {
    joined_ = true;
    thread_->post(take_part_with_zeros);
  }
}

void Participant::end_join() {
  thread_->wait();
  joined_ = false;
}

void Participant::leave() {
  for (GradientExchange* exchange : exchanges_) {
    exchange->end();
  }
  const auto close = [this](ProcessGroup& group) { close_records(group); };
  size_ > 1 ? together({.text = "shutdown"}, close) : thread_->call(close);
  if (!unwritten_.empty()) {
    throw std::runtime_error(unwritten_);
  }
  thread_.reset();
}

void Participant::close_records(ProcessGroup& group) {
  if (recordings_.empty()) {
    return;
  }
  thread_->finish_phases(group);
  for (const auto& recording : recordings_) {
    if (const auto closed = recording->close(group); !closed) {
      unwritten_ = closed.error().message();
    }
  }
}

void Participant::abort(int code) {
  if (size_ > 1) {
    const auto end = [code](ProcessGroup& group) { group.abort(code); };
    if (!thread_->try_post(end) && !exchanges_.empty()) {
      exchanges_.front()->fail(std::make_exception_ptr(Aborted(code)));
    }
    std::this_thread::sleep_for(
        std::chrono::seconds(2));  // if MPI does not hear, the launcher does
  }
  std::_Exit(code);
}

}  // namespace sluice
