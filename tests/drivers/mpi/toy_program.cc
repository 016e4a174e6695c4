// Trains toy learners as one process of an MPI job, for mpi_test.cc:
//
//   toy_program STRATEGY ITERATIONS [RANK FAULT]     STRATEGY as for toy_set_up(), after tcp/ or
//                                                    tcp2/ over TCP (with 2 threads for it); FAULT
//                                                    of that rank: see below
//
// throw, kill, stop, sleep: in the third iteration. babble, misdeal, garble, repeat: a message that
// is wrong, has wrong contents, or comes twice. late: stops when it is done. Then: stop-trained
// after training, busy for long after training, stop-leaving when there is nothing more to say,
// stop-finalising in MPI_Finalize. And still, of all ranks: nobody learns, and the sum of what they
// begin with, their ranks, must not change.
//
// With native sums, which have an order of their own, gradients are whole numbers. Rank 0 prints
// the hash of every rank's parameters, one line each, or that it is a server.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "drivers/mpi/mpi_world.h"
#include "drivers/mpi/toy_watch.h"
#include "drivers/processes/launch.h"
#include "drivers/processes/process_training.h"
#include "nodes/assembly.h"
#include "support/forwarding_effects.h"
#include "support/toy_job.h"
#include "support/whole_numbers.h"

namespace sluice::testing {

constexpr std::size_t kBlockBytes = 1000;

namespace {

void say(const std::string& text) { std::cerr << text << std::endl; }

// In one write: the others may complain at the same moment.
int fail(std::size_t rank, const std::exception& why) {
  std::cerr << "rank " + std::to_string(rank) + ": " + why.what() + "\n" << std::flush;
  return 1;
}

// Stops the process soon, but not at once.
void stop_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(getpid(), SIGSTOP);
  }).detach();
}

// Triggers its fault at the third iteration, or in the last one.
class Faulty final : public Learner {
 public:
  Faulty(std::unique_ptr<Learner> learner, std::string fault, Iteration last)
      : learner_(std::move(learner)), fault_(std::move(fault)), last_(last) {
    ++toy_watch.learners;
  }
  ~Faulty() override { --toy_watch.learners; }
  Faulty(const Faulty&) = delete;
  Faulty& operator=(const Faulty&) = delete;

  const std::vector<Layer>& layers() const override { return learner_->layers(); }
  std::span<float> parameters() override { return learner_->parameters(); }
  std::span<float> gradients() override { return learner_->gradients(); }
  void gradients_into(std::span<float> buffer) override { learner_->gradients_into(buffer); }
  std::optional<double> step(Iteration iteration, StepHooks& hooks) override {
    if (iteration == 3 && fault_ == "throw") {
      throw std::runtime_error("the learner has had enough");
    }
    if (iteration == 3 && fault_ == "kill") {
      std::raise(SIGKILL);
    }
    if (iteration == 3 && fault_ == "stop") {
      std::raise(SIGSTOP);
    }
    if (iteration == 3 && fault_ == "sleep") {
      std::this_thread::sleep_for(std::chrono::seconds(13));
    }
    const auto loss = learner_->step(iteration, hooks);
    if (iteration == last_ && fault_ == "late") {
      stop_soon();
    }
    if (iteration == last_ && fault_ == "linger") {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    return loss;
  }
  std::optional<Evaluation> evaluate() override { return {}; }

 private:
  std::unique_ptr<Learner> learner_;
  std::string fault_;
  Iteration last_;
};

// Sends a wrong third message with a payload: about a chunk that does not exist, to a server that
// does not keep it, with sparse contents that point nowhere, or twice.
class Babbling final : public Protocol {
 public:
  Babbling(Protocol& host, const Topology& topology, std::string fault)
      : host_(host), topology_(topology), fault_(std::move(fault)) {}

  void handle(const Event& event, Effects& effects) override {
    const auto* sent = std::get_if<Sent>(&event);
    if (sent != nullptr && repeated_ == sent->message) {
      repeated_.reset();  // the host knows of one only
      return;
    }
    Babble babble(*this, effects);
    host_.handle(event, babble);
  }
  BufferRange landing(const Message& message) const override { return host_.landing(message); }

 private:
  class Babble final : public ForwardingEffects {
   public:
    Babble(Babbling& owner, Effects& driver)
        : ForwardingEffects(driver), owner_(owner), driver_(driver) {}
    void send(const Message& message, Payload payload) override {
      owner_.send(message, std::move(payload), driver_);
    }

   private:
    Babbling& owner_;
    Effects& driver_;
  };

  void send(const Message& message, Payload payload, Effects& driver) {
    Message babble = message;
    const bool leaves = topology_.host_of(message.from) != topology_.host_of(message.to);
    constexpr Bytes kOneEntry = 12;  // of a sparse vector
    if (payload.size() >= kOneEntry && leaves && ++sent_ == 3) {
      if (fault_ == "garble") {
        std::vector<std::byte> bytes(payload.bytes().begin(), payload.bytes().end());
        std::fill_n(bytes.begin() + 4, 4, std::byte{0xff});  // the first position
        payload = Payload::owning(std::move(bytes));
      } else if (fault_ == "repeat") {
        repeated_ = message;
        repeated_->wants_return = false;
        driver.send(*repeated_, payload);
      } else {
        babble.chunk = ChunkId(fault_ == "misdeal" ? message.chunk.index() + 1 : 1'000'000);
      }
    }
    driver.send(babble, std::move(payload));
  }

  Protocol& host_;
  Topology topology_;
  std::string fault_;
  int sent_ = 0;
  std::optional<Message> repeated_;
};

std::unique_ptr<Learner> toy(std::size_t rank, bool exact) {
  if (exact) {
    return std::make_unique<WholeNumbers>(kToyLayers, rank);
  }
  return std::make_unique<ToyLearner>(kToyLayers, rank);
}

// A gather does not take a text that is meant for the next, although the last rank is late for
// both.
void check_gatherings(ProcessWorld& world) {
  if (world.rank() + 1 == world.size()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  for (const std::string round : {"first", "second"}) {
    for (const std::string& text : world.gather(round, "a word")) {
      check(text == round, "a gather has the texts of its own round");
    }
  }
}

// Longer than a block, and not a multiple of it.
void check_long_texts(ProcessWorld& world) {
  const auto text_of = [](std::size_t rank) {
    std::string text(10 * kBlockBytes + 7 + rank, 'a');
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<char>('a' + (i * i + rank) % 26);
    }
    return text;
  };
  const std::vector<std::string> texts = world.gather(text_of(world.rank()), "a long text");
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    check(texts[rank] == text_of(rank), "a long text arrives whole");
  }
  const std::string own = world.rank() == 0 ? text_of(0) : "";
  check(world.broadcast(own, "a long text") == text_of(0),
        "a long text arrives whole at all ranks");
  check(world.broadcast("", "nothing").empty(), "an empty text arrives too");
}

// Every rank gets its own text, whatever its length.
void check_scattering(ProcessWorld& world) {
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < world.size(); ++r) {
    texts.emplace_back(r * kBlockBytes, static_cast<char>('a' + r));
  }
  const auto own = texts[world.rank()];
  check(world.scatter(world.rank() == 0 ? texts : std::vector<std::string>(), "texts") == own,
        "every rank gets its own text");
}

// Returns a rule by which nobody learns.
UpdateRule begin_still(const ProcessWorld& world,
                       const std::vector<std::unique_ptr<Learner>>& learners) {
  std::ranges::fill(learners.front()->parameters(), static_cast<float>(world.rank()));
  return {.rate = {.base = 0}};
}

void check_still(ProcessWorld& world, const std::vector<std::unique_ptr<Learner>>& learners,
                 const std::string& fault) {
  if (fault != "still") {
    return;
  }
  const float own = learners.front()->parameters().front();
  float sum = 0;
  for (const std::string& value : world.gather(fmt::format("{}", own), "a parameter")) {
    sum += std::stof(value);
  }
  const std::size_t expected = world.size() * (world.size() - 1) / 2;
  check(world.rank() != 0 || sum == static_cast<float>(expected), "the sum stays");
}

// What stands before the slash in the words for a set-up, if there is one.
Carrier carrier_in(std::string& words) {
  const std::size_t slash = words.find('/');
  if (slash == std::string::npos) {
    return {};
  }
  const std::string kind = words.substr(0, slash);
  words.erase(0, slash + 1);
  return {.address = "127.0.0.1", .threads = kind == "tcp" ? 0 : kind.back() - '0'};
}

void run(ProcessWorld& world, std::string words, Iteration iterations, const std::string& fault) {
  const Carrier carrier = carrier_in(words);
  const ToySetUp set_up = toy_set_up(words);
  const Strategy& strategy = set_up.strategy;
  const std::size_t workers = world.size() - set_up.servers;
  // A server has a learner only to begin with its parameters.
  const std::unique_ptr<Learner> first = toy(0, strategy.driver_sums());
  std::vector<std::unique_ptr<Learner>> learners;
  if (world.rank() < workers) {
    learners.push_back(
        std::make_unique<Faulty>(toy(world.rank(), strategy.driver_sums()), fault, iterations - 1));
  }
  const UpdateRule rule = fault == "still" ? begin_still(world, learners) : kToyRule;
  Job job;
  job.layers = first->layers();
  const bool in_memory = strategy.collective == Collective::kSharedMemory;
  job.topology = Topology(workers, 1, set_up.servers, in_memory ? world.size() : 1);
  job.strategy = strategy;
  job.here = HostId(world.rank());
  const Clock clock;
  std::optional<TrainingState> state;
  std::size_t steps = 0;
  for (const auto& [part, last] : toy_phases(job, iterations)) {
    Assembly assembly = assemble(part);
    Protocol*& host = assembly.protocols[world.rank()];
    Babbling babbling(*host, part.topology, fault);
    const bool babbles =
        fault == "babble" || fault == "misdeal" || fault == "garble" || fault == "repeat";
    host = babbles ? &babbling : host;
    if (!state) {
      state.emplace(part.topology, learners,
                    TrainingState::FirstModel{first->layers(), first->parameters()},
                    *assembly.chunks, part.strategy, rule, HostId(world.rank()));
    }
    train_processes(world,
                    {.topology = part.topology,
                     .chunks = *assembly.chunks,
                     .strategy = part.strategy,
                     .rules = *assembly.rules,
                     .hosts = assembly.protocols,
                     .state = *state,
                     .first = part.first,
                     .last = last,
                     .clock = clock,
                     .on_step = [&](const StepReport&) { ++steps; },
                     .on_boundary = {}},
                    carrier, say);
  }
  if (fault == "stop-trained") {
    std::raise(SIGSTOP);
  }
  if (fault == "busy") {
    world.attend([] { std::this_thread::sleep_for(std::chrono::seconds(9)); });
  }
  if (world.rank() == 0) {
    check(steps == static_cast<std::size_t>(iterations) * workers, "every step is reported");
  }
  check_gatherings(world);
  check_long_texts(world);
  check_scattering(world);
  check_still(world, learners, fault);
  check(processes_per_machine(world.machines()) == world.size(), "all are on this machine");
  const std::string own =
      learners.empty()
          ? "server"
          : fmt::format("{:016x}", hash_of(std::as_bytes(learners.front()->parameters())));
  for (const std::string& line : world.gather(own, "the hash")) {
    std::cout << line << "\n";
  }
}

}  // namespace
}  // namespace sluice::testing

int main(int argc, char** argv) {
  auto world = sluice::join_mpi(sluice::testing::say, sluice::testing::fail,
                                sluice::MpiLife::kWorld, sluice::testing::kBlockBytes);
  if (!world) {
    std::cerr << world.error().message() << "\n";
    return 1;
  }
  const auto joined = *std::move(world);
  const std::string fault = argc > 4 ? argv[4] : "";
  const bool faulty = argc > 4 && joined->rank() == std::stoul(argv[3]);
  const std::string of_others = fault == "late" ? "linger" : fault == "still" ? fault : "";
  try {
    sluice::testing::run(*joined, argv[1], std::stol(argv[2]), faulty ? fault : of_others);
  } catch (const std::exception& e) {
    joined->abort(sluice::testing::fail(joined->rank(), e));
  }
  if (faulty && fault == "stop-leaving") {
    std::raise(SIGSTOP);
  }
  sluice::testing::toy_watch.stops_finalising = faulty && fault == "stop-finalising";
  return 0;
}
