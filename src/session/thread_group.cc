#include "session/thread_group.h"

#include "drivers/threads/thread_training.h"

namespace sluice {
namespace {

class ThreadGroup final : public ProcessGroup {
 public:
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::optional<HostId> own_host() const override { return std::nullopt; }

  std::string from_leader(const std::string& text, const std::string& /*what*/) override {
    return text;
  }
  std::vector<std::string> to_leader(const std::string& text,
                                     const std::string& /*what*/) override {
    return {text};
  }
  std::string scatter(const std::vector<std::string>& texts, const std::string& /*what*/) override {
    return texts.at(0);
  }
  void meet() override {}
  std::vector<std::size_t> machines() override { return {0}; }

  NetworkFacts tune(Job& /*job*/, const ChosenSizes& /*chosen*/) override { return {}; }
  std::optional<Survey> survey(const SurveySpec& /*spec*/) override { return Survey{}; }

  std::optional<int> train(const Phase& phase) override { return train_on_threads(phase); }

  void attend(const std::function<void()>& work) override { work(); }

  void abort(int /*code*/) override {}
};

}  // namespace

std::unique_ptr<ProcessGroup> make_thread_group() { return std::make_unique<ThreadGroup>(); }

}  // namespace sluice
