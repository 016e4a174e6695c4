#include "session/launched_group.h"

#include <utility>

#include "drivers/hub/hub_world.h"
#include "drivers/hub/tcp_survey.h"
#include "drivers/mpi/mpi_survey.h"
#include "drivers/mpi/mpi_world.h"
#include "drivers/processes/process_training.h"

namespace sluice {
namespace {

class LaunchedGroup final : public ProcessGroup {
 public:
  LaunchedGroup(std::unique_ptr<ProcessWorld> world, Warn warn)
      : world_(std::move(world)), warn_(std::move(warn)) {}

  std::size_t rank() const override { return world_->rank(); }
  std::size_t size() const override { return world_->size(); }
  std::size_t leader() const override { return world_->leader(); }
  std::optional<HostId> own_host() const override { return HostId(rank()); }

  std::string from_leader(const std::string& text, const std::string& what) override {
    return world_->broadcast(text, what);
  }
  std::vector<std::string> to_leader(const std::string& text, const std::string& what) override {
    return world_->gather(text, what);
  }
  std::string agree(const std::string& own, const Decide& decide,
                    const std::string& what) override {
    return world_->agree(own, decide, what);
  }
  std::string scatter(const std::vector<std::string>& texts, const std::string& what) override {
    return world_->scatter(texts, what);
  }
  void all_reduce(const Numbers& numbers, Reduction reduction) override {
    world_->all_reduce(numbers, reduction);
  }
  void broadcast_from(std::size_t root, std::span<std::byte> bytes) override {
    world_->broadcast_from(root, bytes);
  }
  std::vector<std::string> all_gather(const std::string& own) override {
    return world_->all_gather(own);
  }
  void meet() override { world_->meet(); }
  std::vector<std::size_t> machines() override { return world_->machines(); }

  NetworkFacts tune(Job& job, const ChosenSizes& chosen) override;
  std::optional<Survey> survey(const SurveySpec& spec) override {
    return world_->has_transport() ? survey_links(*world_, spec) : survey_over_tcp(*world_, spec);
  }

  std::optional<int> train(const Phase& phase) override {
    return train_processes(*world_, phase, carrier_for(phase), warn_);
  }

  std::unique_ptr<RunningPhase> begin(const Phase& phase) override {
    return begin_processes(*world_, phase, carrier_for(phase), warn_);
  }
  void while_waiting(std::function<void()> work) override {
    world_->while_waiting(std::move(work));
  }
  void beat() override { world_->beat(); }

  void attend(const std::function<void()>& work) override { world_->attend(work); }

  std::vector<std::size_t> lost() const override { return world_->lost(); }
  std::vector<PeerLoss> losses() const override { return world_->losses(); }
  bool joins() const override { return world_->joins(); }
  void await_admission() override { world_->await_admission(); }
  void note_beginning() override { world_->note_beginning(); }
  void end_beginning(bool takes_joiners) override { world_->end_beginning(takes_joiners); }
  bool has_joiners() const override { return world_->has_joiners(); }
  std::vector<std::size_t> let_in() override { return world_->let_in(); }
  void send_text(std::size_t to, const std::string& text) override { world_->send_text(to, text); }
  std::string receive_text(std::size_t from, const std::string& what) override {
    return world_->receive_text(from, what);
  }
  void abort(int code) override { world_->abort(code); }
  void carry_by(const TransportChoice& choice) override { choice_ = choice; }

 private:
  Carrier carrier_for(const Phase& phase) const {
    return phase.strategy.driver_sums() ? Carrier{} : carrier_;
  }

  const std::unique_ptr<ProcessWorld> world_;
  const Warn warn_;
  TransportChoice choice_;
  Carrier carrier_;
};

NetworkFacts LaunchedGroup::tune(Job& job, const ChosenSizes& chosen) {
  carrier_ = choose_carrier(*world_, job.topology, job.strategy, choice_);
  NetworkFacts facts{
      .link = std::nullopt, .long_messages = world_->long_messages(), .carrier = carrier_};
  job.here = HostId(rank());
  job.server_threads = arithmetic_threads(processes_on_a_machine(job.topology));
  const bool together = job.topology.on_one_machine();
  if (!together) {
    job.link = world_->measure_link();
    facts.link = job.link;
  }
  tune_for_link(job, chosen, !carrier_.is_tcp());
  if (together && !carrier_.is_tcp()) {
    tune_sums_for_machine(job);
  }
  return facts;
}

}  // namespace

bool is_launched() { return find_launch() || program_runs_mpi(); }

Result<std::unique_ptr<ProcessGroup>> join_launched(Warn warn, Fail fail, MpiLife life) {
  const auto job = find_hub_job();
  auto world = job ? join_hub(*job, warn, std::move(fail)) : join_mpi(warn, std::move(fail), life);
  if (!world) {
    return world.error();
  }
  return std::unique_ptr<ProcessGroup>(
      std::make_unique<LaunchedGroup>(*std::move(world), std::move(warn)));
}

}  // namespace sluice
