#pragma once

#include <string>
#include <vector>

#include "session/process_group.h"

namespace sluice {

// This process alone, which runs all hosts.
class LocalGroup : public ProcessGroup {
 public:
  std::size_t rank() const final { return 0; }
  std::size_t size() const final { return 1; }
  std::optional<HostId> own_host() const final { return std::nullopt; }

  std::string from_leader(const std::string& text, const std::string& /*what*/) final {
    return text;
  }
  std::vector<std::string> to_leader(const std::string& text, const std::string& /*what*/) final {
    return {text};
  }
  std::string scatter(const std::vector<std::string>& texts, const std::string& /*what*/) final {
    return texts.at(0);
  }
  void all_reduce(const Numbers& /*numbers*/, Reduction /*reduction*/) final {}
  void broadcast_from(std::size_t /*root*/, std::span<std::byte> /*bytes*/) final {}
  std::vector<std::string> all_gather(const std::string& own) final { return {own}; }
  void meet() final {}
  std::vector<std::size_t> machines() final { return {0}; }
  std::optional<Survey> survey(const SurveySpec& /*spec*/) final { return Survey{}; }

  void attend(const std::function<void()>& work) final { work(); }
  void abort(int /*code*/) final {}
};

}  // namespace sluice
