#include "drivers/hub/hub_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "drivers/hub/beginning.h"
#include "drivers/hub/direct_texts.h"
#include "drivers/hub/hub_admission.h"
#include "drivers/hub/hub_connection.h"
#include "drivers/hub/hub_letters.h"
#include "drivers/hub/hub_texts.h"
#include "drivers/hub/reduce.h"
#include "drivers/hub/tcp_ring.h"
#include "drivers/processes/joined_texts.h"
#include "drivers/processes/overdue.h"
#include "formats/link_cost.h"

namespace sluice {
namespace {

constexpr std::uint32_t kTextChannel = 0;
constexpr const char* kLinkCost = "the cost of a message";
constexpr const char* kBroadcast = "a broadcast";

class HubWorld final : public ProcessWorld {
 public:
  HubWorld(std::unique_ptr<HubConnection> connection, const HubJob& job, Warn warn, Fail fail)
      : connection_(std::move(connection)),
        job_(job),
        warn_(std::move(warn)),
        fail_(std::move(fail)),
        direct_texts_(connection_->own_address()),
        texts_(*connection_, kTextChannel, job.size, job.joins ? job.size : 0) {
    if (job.joins) {
      await([this] { return connection_->beginning().has_value(); }, "what the others began with",
            0);
      beginning_.emplace(*connection_->beginning());
    }
  }

  std::size_t rank() const override { return job_.rank; }
  std::size_t size() const override { return job_.size; }

  std::size_t leader() const override { return texts_.leader(); }

  std::vector<std::string> gather(const std::string& text, const std::string& what) override {
    if (!leads()) {
      send(leader(), text);
      return {};
    }
    return gather_here(text, what);
  }

  std::string broadcast(const std::string& text, const std::string& what) override {
    return from_leader(
        {}, [&] { return text; }, what);
  }

  std::string agree(const std::string& own, const Decide& decide,
                    const std::string& what) override {
    return from_leader(
        own, [&] { return decide(gather_here(own, what)); }, what);
  }

  std::string scatter(const std::vector<std::string>& texts, const std::string& what) override {
    if (!leads()) {
      return receive(leader(), what);
    }
    for (std::size_t r = 0; r < size(); ++r) {
      if (r != rank()) {
        send(r, texts.at(r));
      }
    }
    return texts.at(rank());
  }

  void meet() override {
    gather("", "a sign of life");
    broadcast("", "that all are here");
  }

  LinkCost measure_link() override {
    if (relives()) {
      return link_cost_from(Json::parse(beginning_->take(kLinkCost)));
    }
    std::optional<Beginning> so_far = std::exchange(beginning_, std::nullopt);
    const LinkCost link = measure_link_over_tcp(*this);
    beginning_ = std::move(so_far);
    note(kLinkCost, json_of(link).dump());
    return link;
  }

  std::vector<std::size_t> machines() override {
    const std::vector<std::string> names =
        gather_all(host_name() + " " + boot_id(), "the names of machines");
    std::vector<std::size_t> first;
    for (const std::string& name : names) {
      const auto found = std::ranges::find(names, name);
      first.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    return first;
  }

  std::string address() const override { return connection_->own_address(); }
  std::optional<LongMessages> long_messages() const override { return std::nullopt; }
  std::unique_ptr<PeerTransport> make_transport(const TransportSpec& /*spec*/) override {
    fail_check("only TCP connections carry messages without MPI");
  }
  std::unique_ptr<Letters> open_letters() override {
    return std::make_unique<HubLetters>(*connection_, ++channels_);
  }

  void outlive(std::function<bool(std::size_t rank)> which) override {
    outlives_ = std::move(which);
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < size(); ++r) {
      if (outlives_(r)) {
        ranks.push_back(r);
      }
    }
    connection_->outlive(fmt::format("{}", fmt::join(ranks, " ")));
  }
  void cut_off(std::size_t rank) override { connection_->cut_off(rank); }
  bool joins() const override { return job_.joins; }
  bool has_joiners() const override { return !connection_->joiners().empty(); }
  void note_beginning() override {
    if (leads()) {
      beginning_.emplace();
    }
  }
  void end_beginning(bool takes_joiners) override {
    if (beginning_ && leads() && takes_joiners) {
      connection_->tell_joiners(beginning_->text());
    }
    beginning_.reset();
  }
  std::vector<std::size_t> let_in() override {
    const auto admission = [this] {
      texts_.take_all();  // so that what predecessors have sent can be told from the rest
      HubAdmission now{.joining = connection_->joiners(), .all = lives_, .channels = channels_};
      for (const auto& [rank, life] : now.joining) {
        now.all[rank] = life;
      }
      return encode(now);
    };
    return admit(joining_in(from_leader({}, admission, "who joins", Tells::kAlsoWhoJoins)));
  }
  void await_admission() override {
    connection_->ready();
    std::optional<Letters::Letter> letter;
    const auto came = [&] {
      do {
        letter = connection_->take(kTextChannel);
      } while (letter && !letter->text);
      return letter.has_value();
    };
    await(came, "to be let in", 0);
    texts_.lead(letter->from);
    const HubAdmission admission = decode_admission(*letter->text);
    channels_ = admission.channels;
    admit(admission.all);
    beginning_.reset();
  }
  void send_text(std::size_t to, const std::string& text) override {
    send(to, direct_texts_.letter_with(text));
  }
  std::string receive_text(std::size_t from, const std::string& what) override {
    auto text = DirectTexts::text_of(receive(from, what));
    if (!text) {
      cut_off(from);
    }
    return text ? *std::move(text) : "";
  }

  std::vector<std::size_t> lost() const override {
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < size(); ++r) {
      if (!connection_->why_lost(r).empty()) {
        ranks.push_back(r);
      }
    }
    return ranks;
  }

  std::vector<PeerLoss> losses() const override { return connection_->losses(); }

  void all_reduce(const Numbers& numbers, Reduction reduction) override {
    const std::string own(static_cast<const char*>(numbers.data), bytes_of(numbers));
    const std::vector<std::string> all = gather(own, "the numbers of an all-reduce");
    for (std::size_t r = 1; r < all.size(); ++r) {
      if (!all[r].empty() || numbers.count == 0) {
        reduce_into(numbers, all[r], reduction);
      }
    }
    broadcast_from(0, {static_cast<std::byte*>(numbers.data), bytes_of(numbers)});
  }

  void broadcast_from(std::size_t root, std::span<std::byte> bytes) override {
    if (rank() == root) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      note(kBroadcast, text);
      for (std::size_t r = 0; r < size(); ++r) {
        if (r != root) {
          send(r, text);
        }
      }
      return;
    }
    const std::string text = receive(root, kBroadcast);
    if (text.size() != bytes.size()) {
      throw std::runtime_error(fmt::format("a broadcast of {} bytes brought {} from rank {}",
                                           bytes.size(), text.size(), root));
    }
    std::memcpy(bytes.data(), text.data(), bytes.size());
  }

  std::vector<std::string> all_gather(const std::string& own) override {
    return gather_all(own, "the texts of an all-gather");
  }

  // The hub hears of every process all the time, since its connection has a thread of its own.
  void expect_heartbeats() override {}
  void while_waiting(std::function<void()> work) override { while_waiting_ = std::move(work); }
  void beat() override {
    if (const std::string fault = connection_->fault(); !fault.empty()) {
      fail(std::make_exception_ptr(std::runtime_error(fault)));
    }
  }
  void attend(const std::function<void()>& work) override { work(); }

  [[noreturn]] void fail(const std::exception_ptr& why) override {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& error) {
      abort(fail_(rank(), error));
    } catch (...) {
      abort(fail_(rank(), std::runtime_error("an exception that is no std::exception")));
    }
  }

  // The others go on if this process has only wanted to join them.
  [[noreturn]] void abort(int code) override {
    if (!job_.joins || outlives_) {
      connection_->fail(code);
    }
    std::_Exit(code);
  }

 private:
  // Whether this process hears of the beginning of a run that goes on, from which it is away yet.
  bool relives() const { return job_.joins && beginning_; }
  void note(const std::string& what, const std::string& text) {
    if (beginning_ && leads()) {
      beginning_->note(what, text);
    }
  }

  void send(std::size_t to, const std::string& text) {
    if (!relives()) {
      connection_->send(to, kTextChannel, text);
    }
  }

  std::vector<std::string> gather_all(const std::string& own, const std::string& what) {
    return split(agree(own, joined, what));
  }

  std::vector<std::size_t> admit(const Lives& joining) {
    std::vector<std::size_t> ranks;
    for (const auto& [rank, life] : joining) {
      connection_->admit(rank, life);
      texts_.count_in(rank);
      lives_[rank] = life;
      ranks.push_back(rank);
    }
    return ranks;
  }

  void await(const std::function<bool()>& here, const std::string& what, std::size_t from) {
    const auto overdue = [&] {
      warn_(fmt::format("{} still waits for {} of rank {}", rank_on_host(rank()), what, from));
    };
    const auto look = [&] {
      beat();
      if (while_waiting_) {
        while_waiting_();
      }
      return here();
    };
    poll_until(look, overdue, while_waiting_ ? std::chrono::microseconds(0) : kNap);
  }

  // Whom a text of the leader is for.
  enum class Tells : bool { kAll, kAlsoWhoJoins };

  // The text of who leads. All hear it between the same losses, or do not hear it. So all know
  // whether it has told this text before it was lost, and who does so now.
  std::string from_leader(const std::optional<std::string>& own,
                          const std::function<std::string()>& make, const std::string& what,
                          Tells tells = Tells::kAll) {
    if (relives()) {
      return beginning_->take(what);
    }
    for (; texts_.last_leader() != rank(); texts_.take_next_leader(rank())) {
      if (own) {
        send(texts_.last_leader(), *own);
      }
      if (auto text = receive_unless_lost(texts_.last_leader(), what)) {
        return *std::move(text);
      }
    }
    const std::string text = make();
    note(what, text);
    if (tells == Tells::kAll) {
      connection_->send_to_all(kTextChannel, text);
    } else {
      connection_->send_admission(kTextChannel, text);
    }
    return text;
  }

  std::vector<std::string> gather_here(const std::string& own, const std::string& what) {
    std::vector<std::string> texts(size());
    for (std::size_t r = 0; r < size(); ++r) {
      texts[r] = r == rank() ? own : receive(r, what);
    }
    return texts;
  }

  // Nothing if this rank is lost, and the run goes on without it.
  std::string receive(std::size_t from, const std::string& what) {
    return receive_unless_lost(from, what).value_or("");
  }
  std::optional<std::string> receive_unless_lost(std::size_t from, const std::string& what) {
    if (relives()) {
      return beginning_->take(what);
    }
    const auto here = [&] {
      texts_.take_all();
      return texts_.has(from) || texts_.is_lost(from);
    };
    await(here, what, from);
    texts_.take_all();  // what it sent before it was lost
    if (texts_.has(from)) {
      return texts_.next(from);
    }
    if (outlives_ && outlives_(from)) {
      return std::nullopt;
    }
    fail(std::make_exception_ptr(std::runtime_error(
        fmt::format("rank {} was lost: {}", from, connection_->why_lost(from)))));
  }

  const std::unique_ptr<HubConnection> connection_;
  const HubJob job_;
  const Warn warn_;
  const Fail fail_;
  DirectTexts direct_texts_;
  HubTexts texts_;
  std::uint32_t channels_ = kTextChannel;
  // In the leader from note_beginning() to end_beginning(); in a process that joins, until it does.
  std::optional<Beginning> beginning_;
  Lives lives_;  // of all that were let in
  std::function<bool(std::size_t rank)> outlives_;
  std::function<void()> while_waiting_;
};

}  // namespace

Result<std::unique_ptr<ProcessWorld>> join_hub(const HubJob& job, Warn warn, Fail fail) {
  auto connection = HubConnection::open(job.hub, job.rank, job.joins);
  if (!connection) {
    return connection.error();
  }
  return std::unique_ptr<ProcessWorld>(
      std::make_unique<HubWorld>(*std::move(connection), job, std::move(warn), std::move(fail)));
}

}  // namespace sluice
